"""`run_sections`: a report's sections about a run: result, verdict, configuration, layout and calculations. Pure."""

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
    known_facts,
)
from llmb_tui.answers.plan import cost_words, parallelism_column, scaling_word
from llmb_tui.answers.reported_run import bad_end
from llmb_tui.answers.result import loss_words, steady_words
from llmb_tui.answers.table import Cell, Quantity, Table, expected_cell, value_at
from llmb_tui.catalog.recipe import VARIANT_WORDS
from llmb_tui.evidence.reported_run import ReportedRun
from llmb_tui.language.instants import utc_time
from llmb_tui.language.labels import gpus_label
from llmb_tui.language.quantities import (
    count,
    days_digits,
    flops,
    percent,
    percent_digits,
    plain_number,
    seconds,
    step_time,
    step_time_digits,
    step_time_range,
    tflops,
    tokens_per_s,
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
_NO_DIGEST = "unknown: the container is named by its tag, and the log does not contain its digest"


def run_sections(run: ReportedRun, *, level: int = 2, prefix: str = "") -> tuple[Section, ...]:
    """Sections about a run; `prefix` makes the names of its pictures unique in a document about several runs.

    Such a document has a separate section for the comparison, so the sections of a run have none.
    """
    sections: list[tuple[str, tuple[Block, ...]]] = [
        ("Result", tuple(_result(run, prefix))),
        ("Verdict and its basis", tuple(_verdict(run))),
        ("Other runs and published results", () if prefix else tuple(_other_results(run))),
        ("Configuration", (_configuration(run),)),
        ("Layout, cluster and software", tuple(_environment(run))),
        ("Deviations from the published procedure", tuple(_deviations(run))),
        ("Calculation of the numbers", (Bullets(tuple(_calculations(run))),)),
        ("Script and accounting", tuple(_listings(run))),
    ]
    return tuple(Section(title, blocks, level) for title, blocks in sections if blocks)


def _result(run: ReportedRun, prefix: str) -> Iterator[Block]:
    result, plan = run.result, run.result.plan
    rows: list[tuple[Cell, ...]] = []
    for label, (name, text) in _FIGURES.items():
        measured = result.step_time_s if name == "step_time_s" else value_at(result.figures, name)
        expected = value_at(plan.estimate, name)
        share = None if measured is None or not expected else 100 * measured / expected
        cells = [_cell(measured, text), _cell(expected, text), _cell(share, percent_digits)]
        if name == "step_time_s":
            cells[1] = expected_cell(plan.estimate)
        rows.append((label, *cells, _cell(getattr(plan.published, name, None), plain_number)))
    table = Table.of(("", "measured", "expected", "% of expected", "README value"), rows)
    yield Grid("Figures by the recipe's rule. Lower is better for step time and days, higher for the others.", table)
    yield known_facts(
        Fact("Steps", f"{count(result.progress.steps_done)} of {count(result.steps_total)}"),
        Fact("Steady steps", _steady(result)),
        Fact("Loss", loss_words(result.loss.words, run.loss_against_first) if result.loss else ""),
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
    return f"{steady.count} {which}: {steady_words(steady)}"


def _checkpoints(result: RunResult) -> str:
    more = len(result.checkpoints) - _MOST_CHECKPOINTS
    times = [f"{each.kind} {seconds(each.seconds)}" for each in result.checkpoints[:_MOST_CHECKPOINTS]]
    return ", ".join([*times, *([f"and {more} more"] if more > 0 else [])])


def _verdict(run: ReportedRun) -> Iterator[Block]:
    result, verdict, estimate = run.result, run.result.verdict, run.result.plan.estimate
    if verdict is None:
        state = result.record.state
        yield Text(" ".join(filter(None, (state.no_verdict, state.why_failed))) or "There is no verdict.")
    else:
        ended = bad_end(run)
        until = f"{ended} Until then " if ended else ""
        yield Text(until + _arithmetic(verdict, run.threshold))
    basis = [
        *(verdict.reasons if verdict else ()),
        f"The recipe's rule for a result: {result.rule_words} ({result.rule.source}).",
    ]
    if estimate is not None:
        basis.append(
            f"The expected step time is {method_phrase(estimate.method)}: {estimate.anchor}. Its band, "
            f"{step_time_range(estimate.low_s, estimate.high_s)}, allows for differences between clusters."
        )
    if result.plan.published is not None:
        note = f" {result.plan.published.note}" if result.plan.published.note else ""
        basis.append(f"Published in {result.plan.published.source}.{note}")
    yield Bullets(tuple(basis))
    if result.validity:
        yield Text("Validity checks: the result counts only if none of them failed.")
        yield known_facts(*(Fact(check.id, check_words(check)) for check in result.validity))


def _arithmetic(verdict: Verdict, threshold: float) -> str:
    return (
        f"{verdict.result}: the expected step time divided by the measured one, {step_time(verdict.measured_s)}, is "
        f"{percent(100 * verdict.ratio)}. At {plain_number(100 * threshold)} % or more it is PASS; below that, it is "
        "FAIL if the step time is above the band, and WARN if it is within the band. At any ratio it is WARN if the "
        "two step times cannot be compared fairly; any reasons follow."
    )


def _other_results(run: ReportedRun) -> Iterator[Block]:
    if (chart := scale_chart(run.over_scale, run.other_scales, run.result)) is not None:
        yield Picture(chart.name, chart)
        yield compact_grid("Step times over the number of GPUs.", _scale_table(run.over_scale, run.other_scales))
    if (chart := history_chart(run.repeats)) is not None:
        yield Picture(chart.name, chart)


def _scale_table(points: Sequence[AtScale], measured: Sequence[RunResult]) -> Table:
    """The numbers of the chart over the number of GPUs."""
    groups, expected = by_scale(measured), {point.gpus: point.estimate for point in points}
    rows = []
    for gpus in sorted({*expected, *groups}):
        estimate, times = expected.get(gpus), groups.get(gpus)
        band: tuple[Cell, ...] = (None,) * 4
        if estimate is not None:
            low, high = _cell(estimate.low_s, step_time_digits), _cell(estimate.high_s, step_time_digits)
            band = (expected_cell(estimate), low, high, method_phrase(estimate.method))
        mean = _cell(fmean(times), step_time_digits) if times else None
        rows.append((gpus, *band, mean, len(times) if times else None))
    return Table.of(("GPUs", "expected s", "low s", "high s", "source", "measured s", "runs"), rows)


def _configuration(run: ReportedRun) -> Facts:
    """The selection of a run."""
    plan = run.result.plan
    selection, overrides = plan.selection, plan.selection.overrides.set_fields()
    variant = f" ({VARIANT_WORDS[plan.precision_variant]})" if plan.precision_variant else ""
    title = f": {run.recipe_title}" if run.recipe_title else ""
    gpus = gpus_label(selection.scale, selection.gpu)
    return known_facts(
        Fact("Workload", f"{selection.workload}@{selection.release}{title}"),
        Fact("Model size", selection.size),
        Fact(
            "GPUs",
            f"{gpus}, {plural(plan.nodes, 'node')} of {plan.gpus_per_node}",
        ),
        Fact("Precision", f"{selection.dtype}{variant}"),
        Fact("Scaling", scaling_word(plan.scaling)),
        Fact("Steps", count(plan.steps)),
        Fact("Time limit", plan.time_limit),
        Fact("Launch method", PROCEDURES[run.result.run.procedure].title),
        Fact(
            "Manual overrides",
            ", ".join(f"{name.replace('_', ' ')} {count(value)}" for name, value in overrides.items()),
        ),
        Fact("Options", ", ".join(option.label for option in chosen_options(plan.options))),
        Fact("Expected cost", "" if plan.gpu_hours is None else cost_words(plan.gpu_hours)),
        Fact("Note", run.note),
    )


def _environment(reported: ReportedRun) -> Iterator[Block]:
    """Layout, cluster, job, container, versions and checksums of a run."""
    run, result, plan = reported.result.run, reported.result, reported.result.plan
    rows = [("this run", *_cells(plan.parallelism)), *([("README", *_cells(plan.printed))] if plan.printed else [])]
    headings = ("", *(parallelism_column(name).heading for name in _LAYOUT))
    caption = (
        "Parallelism and batch: tensor (TP), pipeline (PP), context (CP), expert (EP) and data (DP) parallel, virtual "
        "pipeline stages (VP), micro and global batch (MBS, GBS), micro-batches per step (GA)."
    )
    yield Grid(caption, Table.of(headings, rows))
    spec, job = run.spec, result.job
    image = spec.image_used if spec else ""
    has_digest = "@sha256:" in f"{plan.container}{image}"
    versions = result.facts.versions_by_name if result.facts else {}
    yield known_facts(
        Fact("Cluster", run.cluster + (" (simulated)" if result.simulated else "")),
        Fact(run.words.job.capitalize(), ", ".join(run.job_ids), exact=True),
        Fact("Account and partition", spec.account_and_partition if spec else ""),
        Fact("Nodes", job.node_list if job else "", exact=True),
        Fact("Duration of the job", whole_seconds(job.elapsed_s) if job and job.elapsed_s is not None else ""),
        Fact("Submitted", utc_time(run.submitted_at) if run.submitted_at else ""),
        Fact("Last log line copied", utc_time(result.record.log_grew_at) if result.record.log_grew_at else ""),
        Fact("Container", plan.container or "", exact=True),
        Fact("Image on the cluster", image if image != plan.container else "", exact=True),
        Fact("Digest of the container", "" if has_digest else _NO_DIGEST),
        *(Fact(f"{capital(name)}, from the log", version) for name, version in versions.items()),
        Fact("Driver and libraries", "" if versions else "unknown: the log does not contain their versions"),
        Fact("Script, SHA-256", reported.script_sha256, exact=True),
        Fact("Log, SHA-256", reported.log_sha256, exact=True),
    )


def _deviations(reported: ReportedRun) -> Iterator[Block]:
    """Differences of a run from the recipe, and notes on its configuration from before the run."""
    run, plan = reported.result.run, reported.result.plan
    deviations = [PROCEDURES[run.procedure].started_by]
    spec = run.spec
    if spec is not None:
        source = "from the cluster's profile; the recipe has"
        deviations += [f"{name} is {value}, {source} {default}." for name, default, value in spec.changed_variables]
        deviations += [_sentence(note) for note in spec.notes]
    deviations += [
        f"Differs from the runs behind the expected step time: {words}." for words in run.differences_from_reference
    ]
    overrides = plan.selection.overrides.set_fields()
    deviations += [
        f"{name.replace('_', ' ').upper()} is a manual override: {count(value)}." for name, value in overrides.items()
    ]
    for name in _LAYOUT if plan.printed is not None and not overrides else ():
        printed, used = getattr(plan.printed, name), getattr(plan.parallelism, name)
        if printed is not None and printed != used:
            value = "none" if used is None else count(used)
            deviations.append(f"The README has {name.upper()} {count(printed)}; the run had {value}.")
    if plan.selection.steps is not None:
        deviations.append(f"The number of steps was set to {count(plan.steps)}; the recipe's number can differ.")
    deviations += [f"Option in addition to the benchmark: {option.label}." for option in chosen_options(plan.options)]
    if reported.result.restarts:
        deviations.append(f"The job was restarted {plural(reported.result.restarts, 'time')}.")
    yield Bullets(tuple(dict.fromkeys(deviations)))
    notes = [" ".join(filter(None, (problem.reason, problem.fix))) for problem in plan.problems]
    if notes:
        yield Text("Notes on this configuration from before the run:")
        yield Bullets(tuple(notes))


def _cells(layout: Parallelism | Printed) -> Sequence[Cell]:
    return [getattr(layout, name) for name in _LAYOUT]


def _sentence(words: str) -> str:
    text = capital(words)
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _calculations(run: ReportedRun) -> Iterator[str]:
    result, plan = run.result, run.result.plan
    layout, estimate = plan.parallelism, plan.estimate
    batch, sequence = count(layout.gbs), count(layout.seq_len)
    yield (
        f"A step is one update of the weights, over a global batch of {batch} sequences of {sequence} tokens. "
        "Step times are those that the training program prints in its log, without any correction."
    )
    yield f"Tokens/s = {batch} × {sequence} / step time; days for 1T tokens = 10¹² / tokens/s / 86,400."
    if estimate is not None:
        yield (
            f"TFLOPS of a GPU = {batch} × {flops(estimate.model_flops_per_sample)} FLOPs / (step time × "
            f"{count(plan.selection.scale)} GPUs), with the recipe's FLOPs formula ({estimate.flops_formula}). MFU = "
            f"TFLOPS of a GPU / its peak of {plain_number(estimate.peak_tflops)} TFLOPS in {plan.selection.dtype}."
        )
    yield "Deviations are sample standard deviations (÷ n − 1). Times of day are in UTC."
    yield (
        f"`llmb-tui export {result.id} -o FILE.tar.zst` writes the evidence for these numbers to an archive, and "
        "`llmb-tui verify FILE.tar.zst` checks it on any machine."
    )
    if result.record.state.log_unread:
        yield f"The end of the log has not been copied from the cluster; `llmb-tui results {result.id}` copies it."
    if result.record.state.log_removed:
        yield "The copy of the log was removed from this machine; the numbers are from the data read before that."
    elif result.facts is None:
        yield "This machine does not have the whole log; the numbers are from the data read while the run was followed."
    elif result.facts.starts > 1:
        yield f"The log has {result.facts.starts} starts of the training; the steps of the last start count."


def _listings(run: ReportedRun) -> Iterator[Block]:
    if run.script:
        yield Listing(f"Submitted script, {plural(len(run.script.splitlines()), 'line')}", run.script)
    if run.accounting:
        yield Listing(f"Accounting of {run.result.run.words.scheduler} after the end of the run", run.accounting)
