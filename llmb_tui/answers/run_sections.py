"""What a report says of one run: how it came out, on what that rests, what ran, and how its numbers were made. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from statistics import fmean

from llmb_tui.analysis.charts import by_scale, history_chart, scale_chart, step_chart
from llmb_tui.analysis.result import RunResult
from llmb_tui.answers.blocks import (
    Block,
    Bullets,
    Fact,
    Facts,
    Grid,
    Listing,
    Picture,
    Section,
    Text,
    compact_grid,
    known,
)
from llmb_tui.answers.reported_run import bad_end
from llmb_tui.answers.table import Cell, Quantity, Table, expected_cell, value_at
from llmb_tui.catalog.recipe import VARIANT_WORDS
from llmb_tui.evidence.reported_run import ReportedRun
from llmb_tui.language.instants import utc_time
from llmb_tui.language.labels import gpus_label
from llmb_tui.language.quantities import (
    count,
    days_digits,
    flops,
    given,
    gpu_hours,
    percent,
    percent_digits,
    seconds,
    step_time,
    step_time_digits,
    step_time_range,
    tflops,
    tokens_per_s,
    two_digits,
    whole_seconds,
)
from llmb_tui.language.states import method_phrase
from llmb_tui.language.text import capital, plural
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.options import chosen_options
from llmb_tui.plan.over_scale import AtScale
from llmb_tui.plan.plan import Parallelism, Printed
from llmb_tui.watch.state import Verdict
from llmb_tui.watch.validity import check_words

_FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "step time, s": ("step_time_s", step_time_digits),
    "tokens/s of all GPUs": ("tokens_per_s", tokens_per_s),
    "TFLOPS of a GPU": ("tflops_per_gpu", tflops),
    "MFU, %": ("mfu_pct", percent_digits),
    "days for 1T tokens": ("days_per_1t_tokens", days_digits),
}
_MOST_CHECKPOINTS = 8
_LAYOUT = tuple(field.name for field in fields(Parallelism))
_NO_DIGEST = "not known: it is named by its tag, and nothing in the log tells its digest"


def run_sections(one: ReportedRun, *, level: int = 2, prefix: str = "") -> tuple[Section, ...]:
    """All that is said of a run; `prefix` makes the names of its pictures unique in a document of several.

    There it is not held against others again.
    """
    made: list[tuple[str, tuple[Block, ...]]] = [
        ("Result", tuple(_result(one, prefix))),
        ("The verdict and what it rests on", tuple(_verdict(one))),
        ("Beside other runs and what is published", () if prefix else tuple(_beside(one))),
        ("What was asked for", (_asked(one),)),
        ("What ran", tuple(_ran(one))),
        ("Deviations from the published procedure", tuple(_deviations(one))),
        ("How the numbers were made", (Bullets(tuple(_numbers(one))),)),
        ("To the letter", tuple(_listings(one))),
    ]
    return tuple(Section(title, blocks, level) for title, blocks in made if blocks)


def _result(one: ReportedRun, prefix: str) -> Iterator[Block]:
    result, plan = one.result, one.result.plan
    rows: list[tuple[Cell, ...]] = []
    for label, (name, text) in _FIGURES.items():
        measured = result.step_time_s if name == "step_time_s" else value_at(result.figures, name)
        expected = value_at(plan.estimate, name)
        share = None if measured is None or not expected else 100 * measured / expected
        cells = [_cell(measured, text), _cell(expected, text), _cell(share, percent_digits)]
        if name == "step_time_s":
            cells[1] = expected_cell(plan.estimate)
        rows.append((label, *cells, _cell(getattr(plan.published, name, None), given)))
    table = Table.of(("", "measured", "expected", "% of expected", "printed"), rows)
    yield Grid("Figures by the recipe's rule. Of step time and days less is better, of the others more.", table)
    yield known(
        Fact("Steps", f"{count(result.progress.steps_done)} of {count(result.steps_total)}"),
        Fact("Steady steps", _steady(result)),
        Fact("Loss", _loss(one)),
        Fact("Checkpoints", _checkpoints(result)),
        Fact("Restarts", str(result.restarts) if result.restarts else "none"),
        Fact("Starts of the training", str(result.progress.starts)),
    )
    if (chart := step_chart(result)) is not None:
        yield Picture(f"{prefix}{chart.name}", chart)


def _cell(value: float | None, text: Callable[[float], str]) -> Cell:
    return None if value is None else Quantity(value, text)


def _steady(result: RunResult) -> str:
    steady = result.steady
    if steady is None:
        return ""
    which = "in the rule's window" if result.rule.kind == "mean" else "after the warm-up"
    deviation = ""
    if steady.stdev is not None and steady.cv_pct is not None:
        deviation = f", deviation {two_digits(steady.stdev)} s ({two_digits(steady.cv_pct)} %)"
    return (
        f"{steady.count} {which}: mean {step_time(steady.mean)}, median {step_time(steady.median)}{deviation}, "
        f"{step_time_range(steady.low, steady.high)}"
    )


def _loss(one: ReportedRun) -> str:
    loss, apart = one.result.loss, one.loss_against_first
    if loss is None or apart is None:
        return loss.words if loss else ""
    last, most = two_digits(apart.last_pct, "+"), two_digits(apart.largest_pct)
    return (
        f"{loss.words}; {last} % at iteration {apart.step} against run {apart.run}, the first of this configuration, "
        f"{most} % at most"
    )


def _checkpoints(result: RunResult) -> str:
    more = len(result.checkpoints) - _MOST_CHECKPOINTS
    times = [f"{at.kind} {seconds(at.seconds)}" for at in result.checkpoints[:_MOST_CHECKPOINTS]]
    return ", ".join([*times, *([f"and {more} more"] if more > 0 else [])])


def _verdict(one: ReportedRun) -> Iterator[Block]:
    result, verdict, estimate = one.result, one.result.verdict, one.result.plan.estimate
    if verdict is None:
        yield Text(
            " ".join(filter(None, (result.record.state.no_verdict, one.result.record.state.why_failed)))
            or "There is no verdict."
        )
    else:
        ended = bad_end(one)
        until = f"{ended} Until then " if ended else ""
        yield Text(until + _arithmetic(verdict, one.threshold))
    rests = [
        *(verdict.reasons if verdict else ()),
        f"The recipe's rule for a result: {result.rule_words} ({result.rule.source}).",
    ]
    if estimate is not None:
        rests.append(
            f"The expected step time is {method_phrase(estimate.method)}: {estimate.anchor}. Its band, "
            f"{step_time_range(estimate.low_s, estimate.high_s)}, is how far another cluster may lie from it."
        )
    if result.plan.published is not None:
        note = f" {result.plan.published.note}" if result.plan.published.note else ""
        rests.append(f"Printed in {result.plan.published.source}.{note}")
    yield Bullets(tuple(rests))
    if result.validity:
        yield Text("Was the run what it claims to be? Its number counts only if no check failed.")
        yield known(*(Fact(check.id, check_words(check)) for check in result.validity))


def _arithmetic(verdict: Verdict, threshold: float) -> str:
    return (
        f"{verdict.result}: the expected step time over the measured one, {step_time(verdict.measured_s)}, is "
        f"{percent(100 * verdict.ratio)}. From {given(100 * threshold)} % on a run passes; below, it fails if the step "
        "takes longer than the band allows, and is WARN within it. It is also WARN, at any ratio, if "
        "the two cannot be compared fairly; the reasons follow."
    )


def _beside(one: ReportedRun) -> Iterator[Block]:
    if (chart := scale_chart(one.over_scale, one.other_scales, one.result)) is not None:
        yield Picture(chart.name, chart)
        yield compact_grid("Step times over the number of GPUs.", _scale_table(one.over_scale, one.other_scales))
    if (chart := history_chart(one.repeats)) is not None:
        yield Picture(chart.name, chart)


def _scale_table(points: Sequence[AtScale], measured: Sequence[RunResult]) -> Table:
    """The numbers of the chart over the number of GPUs."""
    groups, expected = by_scale(measured), {at.gpus: at.estimate for at in points}
    rows = []
    for gpus in sorted({*expected, *groups}):
        estimate, times = expected.get(gpus), groups.get(gpus)
        band: tuple[Cell, ...] = (None,) * 4
        if estimate is not None:
            low, high = _cell(estimate.low_s, step_time_digits), _cell(estimate.high_s, step_time_digits)
            band = (expected_cell(estimate), low, high, method_phrase(estimate.method))
        mean = _cell(fmean(times), step_time_digits) if times else None
        rows.append((gpus, *band, mean, len(times) if times else None))
    return Table.of(("GPUs", "expected s", "from s", "to s", "it is", "measured here s", "runs"), rows)


def _asked(one: ReportedRun) -> Facts:
    """The selection."""
    plan = one.result.plan
    selection, overrides = plan.selection, plan.selection.overrides.set_fields()
    variant = f" ({VARIANT_WORDS[plan.precision_variant]})" if plan.precision_variant else ""
    title = f": {one.recipe_title}" if one.recipe_title else ""
    gpus = gpus_label(selection.scale, selection.gpu)
    return known(
        Fact("Workload", f"{selection.workload}@{selection.release}{title}"),
        Fact("Model size", selection.size),
        Fact(
            "GPUs",
            f"{gpus}, {plural(plan.nodes, 'node')} of {plan.gpus_per_node}",
        ),
        Fact("Precision", f"{selection.dtype}{variant}"),
        Fact("Scaling", plan.scaling),
        Fact("Steps", f"{count(plan.steps)}, in {plan.time_limit} at most"),
        Fact("Procedure", PROCEDURES[one.result.run.procedure].title),
        Fact(
            "Manual overrides",
            ", ".join(f"{name.replace('_', ' ')} {count(value)}" for name, value in overrides.items()),
        ),
        Fact("Beside the benchmark", ", ".join(option.label for option in chosen_options(plan.options))),
        Fact("Cost, as expected", "" if plan.gpu_hours is None else f"{gpu_hours(plan.gpu_hours)} and start-up"),
        Fact("Note of the operator", one.note),
    )


def _ran(one: ReportedRun) -> Iterator[Block]:
    """Layout, cluster, job, container, versions and checksums."""
    run, result, plan = one.result.run, one.result, one.result.plan
    rows = [("ran", *_cells(plan.parallelism)), *([("printed", *_cells(plan.printed))] if plan.printed else [])]
    headings = ("", *(name.replace("_", " ") if name in ("seq_len", "layers") else name.upper() for name in _LAYOUT))
    caption = (
        "Parallelism and batch: tensor (TP), pipeline (PP), context (CP), expert (EP) and data (DP) parallel, virtual "
        "pipeline stages (VP), micro and global batch (MBS, GBS), micro-batches a step (GA)."
    )
    yield Grid(caption, Table.of(headings, rows))
    spec, job = run.spec, result.job
    image = spec.image_used if spec else ""
    named = "@sha256:" in f"{plan.container}{image}"
    versions = result.facts.versions_by_name if result.facts else {}
    yield known(
        Fact("Cluster", run.cluster + (" (simulated)" if result.simulated else "")),
        Fact(run.words.job.capitalize(), ", ".join(run.job_ids), exact=True),
        Fact("Account and partition", spec.account_and_partition if spec else ""),
        Fact("Nodes", job.node_list if job else "", exact=True),
        Fact("Time of the job", whole_seconds(job.elapsed_s) if job and job.elapsed_s is not None else ""),
        Fact("Submitted", utc_time(run.submitted_at) if run.submitted_at else ""),
        Fact(
            "Last line of its log", f"copied {utc_time(result.record.log_grew_at)}" if result.record.log_grew_at else ""
        ),
        Fact("Container", plan.container or "", exact=True),
        Fact("Image on the cluster", image if image != plan.container else "", exact=True),
        Fact("Digest of the container", "" if named else _NO_DIGEST),
        *(Fact(f"{capital(name)}, by its log", version) for name, version in versions.items()),
        Fact("Driver and libraries", "" if versions else "its log says nothing of their versions"),
        Fact("Script, SHA-256", one.script_sha256, exact=True),
        Fact("Log, SHA-256", one.log_sha256, exact=True),
    )


def _deviations(one: ReportedRun) -> Iterator[Block]:
    """In what it is not the recipe, and what was known of that before."""
    run, plan = one.result.run, one.result.plan
    found = [PROCEDURES[run.procedure].started_by]
    spec = run.spec
    if spec is not None:
        source = "from the cluster's profile; the recipe has"
        found += [f"{name} is {yours}, {source} {theirs}." for name, theirs, yours in spec.changed_variables]
        found += [_sentence(note) for note in spec.notes]
    found += [
        f"Differs from the runs behind the expected step time: {words}." for words in run.differences_from_reference
    ]
    overrides = plan.selection.overrides.set_fields()
    found += [
        f"{name.replace('_', ' ').upper()} is a manual override: {count(value)}." for name, value in overrides.items()
    ]
    for name in _LAYOUT if plan.printed is not None and not overrides else ():
        printed, ran = getattr(plan.printed, name), getattr(plan.parallelism, name)
        if printed is not None and printed != ran:
            found.append(
                f"The README prints {name.upper()} {count(printed)}; {'none' if ran is None else count(ran)} ran."
            )
    if plan.selection.steps is not None:
        found.append(f"{count(plan.steps)} steps were asked for, which need not be the recipe's number.")
    found += [f"Beside the benchmark: {option.label}." for option in chosen_options(plan.options)]
    if one.result.restarts:
        found.append(f"The job was restarted: {plural(one.result.restarts, 'time')}.")
    yield Bullets(tuple(dict.fromkeys(found)))
    notes = [" ".join(filter(None, (problem.reason, problem.fix))) for problem in plan.problems]
    if notes:
        yield Text("What was known of this configuration before it ran:")
        yield Bullets(tuple(notes))


def _cells(layout: Parallelism | Printed) -> Sequence[Cell]:
    return [getattr(layout, name) for name in _LAYOUT]


def _sentence(words: str) -> str:
    text = capital(words)
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _numbers(one: ReportedRun) -> Iterator[str]:
    result, plan = one.result, one.result.plan
    layout, estimate = plan.parallelism, plan.estimate
    batch, sequence = count(layout.gbs), count(layout.seq_len)
    yield (
        f"A step is one update of the weights, over a global batch of {batch} sequences of {sequence} tokens. "
        "Step times are those that the training prints in its log; nothing is added to them or left out."
    )
    yield f"Tokens/s = {batch} × {sequence} / step time; days for 1T tokens = 10¹² / tokens/s / 86,400."
    if estimate is not None:
        yield (
            f"TFLOPS of a GPU = {batch} × {flops(estimate.model_flops_per_sample)} FLOPs / (step time × "
            f"{count(plan.selection.scale)} GPUs), with the recipe's formula ({estimate.flops_formula}); MFU is that "
            f"over a peak of {given(estimate.peak_tflops)} TFLOPS in {plan.selection.dtype}."
        )
    yield "A deviation is that of a sample (÷ n − 1). Times of day are UTC."
    yield (
        f"What these numbers rest on is handed over by `llmb-tui export {result.id} -o FILE.tar.zst`, and checked "
        "anywhere by `llmb-tui verify`."
    )
    if one.result.record.state.log_unread:
        yield f"The end of its log was not copied from the cluster yet; `llmb-tui results {result.id}` does it."
    if one.result.record.state.log_removed:
        yield "The copy of its log was removed from this machine; what counts is what was read of it before."
    elif result.facts is None:
        yield "The whole log is not on this machine; what was folded from it while it was followed is what counts here."
    elif result.facts.starts > 1:
        yield f"The log has {result.facts.starts} starts of the training; the steps of the last one count."


def _listings(one: ReportedRun) -> Iterator[Block]:
    if one.script:
        yield Listing(f"What was submitted, {plural(len(one.script.splitlines()), 'line')}", one.script)
    if one.accounting:
        yield Listing(f"What {one.result.run.words.scheduler} said of it when it was over", one.accounting)
