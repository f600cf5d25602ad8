"""What a report says of one run: how it came out, on what that rests, and how its numbers were made. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.plan.plan import METHOD_WORDS
from llmb_tui.results.charts import history_chart, scale_chart, scale_table, seconds, step_chart
from llmb_tui.results.report.blocks import Block, Bullets, Fact, Grid, Listing, Picture, Section, Text, known, narrowed
from llmb_tui.results.report.reported_run import ReportedRun
from llmb_tui.results.report.run_facts import asked, deviations, ran
from llmb_tui.results.result import RunResult
from llmb_tui.results.table import Cell, Table, value_at
from llmb_tui.text import plural
from llmb_tui.watch.state import Verdict

_FIGURES = {
    "step time, s": "step_time_s",
    "tokens/s of all GPUs": "tokens_per_s",
    "TFLOPS of a GPU": "tflops_per_gpu",
    "MFU, %": "mfu_pct",
    "days for 1T tokens": "days_per_1t_tokens",
}
_MOST_CHECKPOINTS = 8


def run_sections(one: ReportedRun, *, level: int = 2, prefix: str = "") -> tuple[Section, ...]:
    """All that is said of a run; `prefix` makes the names of its pictures unique in a document of several.

    There it is not held against others again.
    """
    made: list[tuple[str, tuple[Block, ...]]] = [
        ("Result", tuple(_result(one, prefix))),
        ("The verdict and what it rests on", tuple(_verdict(one))),
        ("Beside other runs and what is published", () if prefix else tuple(_beside(one))),
        ("What was asked for", (asked(one),)),
        ("What ran", tuple(ran(one))),
        ("Deviations from the published procedure", tuple(deviations(one))),
        ("How the numbers were made", (Bullets(tuple(_numbers(one))),)),
        ("To the letter", tuple(_listings(one))),
    ]
    return tuple(Section(title, blocks, level) for title, blocks in made if blocks)


def _result(one: ReportedRun, prefix: str) -> Iterator[Block]:
    result, plan = one.result, one.result.plan
    rows: list[tuple[Cell, ...]] = []
    for label, name in _FIGURES.items():
        measured = result.step_time_s if name == "step_time_s" else value_at(result.figures, name)
        expected = value_at(plan.estimate, name)
        share = None if measured is None or not expected else 100 * measured / expected
        rows.append((label, measured, expected, share, getattr(plan.published, name, None)))
    table = Table.of(("", "measured", "expected", "% of expected", "printed"), rows)
    yield Grid("Figures by the recipe's rule. Of step time and days less is better, of the others more.", table)
    yield known(
        Fact("Steps", f"{result.steps_done:,} of {result.steps_total:,}"),
        Fact("Steady steps", _steady(result)),
        Fact("Loss", _loss(one)),
        Fact("Checkpoints", _checkpoints(result)),
        Fact("Restarts", str(result.restarts) if result.restarts else "none"),
    )
    if (chart := step_chart(result)) is not None:
        yield Picture(f"{prefix}{chart.name}", chart)


def _steady(result: RunResult) -> str:
    steady = result.steady
    if steady is None:
        return ""
    which = "in the rule's window" if result.rule.kind == "mean" else "after the warm-up"
    deviation = "" if steady.stdev is None else f", deviation {steady.stdev:.2g} s ({steady.cv_pct:.2g} %)"
    return (
        f"{steady.count} {which}: mean {seconds(steady.mean)}, median {seconds(steady.median)}{deviation}, from "
        f"{seconds(steady.low)} to {seconds(steady.high)}"
    )


def _loss(one: ReportedRun) -> str:
    loss, apart = one.result.loss, one.loss_against_first
    if loss is None or apart is None:
        return loss.words if loss else ""
    return (
        f"{loss.words}; {apart.last_pct:+.2g} % at iteration {apart.step} against run {apart.run}, the first of this "
        f"configuration, {apart.largest_pct:.2g} % at most"
    )


def _checkpoints(result: RunResult) -> str:
    more = len(result.checkpoints) - _MOST_CHECKPOINTS
    times = [f"{at.kind} {at.seconds:.4g} s" for at in result.checkpoints[:_MOST_CHECKPOINTS]]
    return ", ".join([*times, *([f"and {more} more"] if more > 0 else [])])


def _verdict(one: ReportedRun) -> Iterator[Block]:
    result, verdict, estimate = one.result, one.result.verdict, one.result.plan.estimate
    if verdict is None:
        yield Text(" ".join(filter(None, (result.no_verdict, one.state.why_failed))) or "There is no verdict.")
    else:
        yield Text(_arithmetic(verdict, one.threshold))
    rests = [
        *(verdict.reasons if verdict else ()),
        f"The recipe's rule for a result: {result.rule_words} ({result.rule.source}).",
    ]
    if estimate is not None:
        rests.append(
            f"The expected step time is {METHOD_WORDS[estimate.method]}: {estimate.anchor}. Its band, "
            f"{seconds(estimate.low_s)} to {seconds(estimate.high_s)}, is how far another cluster may lie from it."
        )
    if result.plan.published is not None:
        note = f" {result.plan.published.note}" if result.plan.published.note else ""
        rests.append(f"Printed in {result.plan.published.source}.{note}")
    yield Bullets(tuple(rests))


def _arithmetic(verdict: Verdict, threshold: float) -> str:
    return (
        f"{verdict.result}: the expected step time over the measured one, {seconds(verdict.measured_s)}, is "
        f"{100 * verdict.ratio:.1f} %. From {100 * threshold:.4g} % on a run passes; below, it fails if the step takes "
        "longer than the band allows, and is WARN within it. It is WARN as well, whatever the ratio, where the two "
        "cannot be compared fairly; then it is said here why."
    )


def _beside(one: ReportedRun) -> Iterator[Block]:
    if (chart := scale_chart(one.over_scale, one.other_scales, one.result)) is not None:
        yield Picture(chart.name, chart)
        yield narrowed("Step times over the number of GPUs.", scale_table(one.over_scale, one.other_scales))
    if (chart := history_chart(one.repeats)) is not None:
        yield Picture(chart.name, chart)


def _numbers(one: ReportedRun) -> Iterator[str]:
    result, plan = one.result, one.result.plan
    layout, estimate = plan.parallelism, plan.estimate
    yield (
        f"A step is one update of the weights, over a global batch of {layout.gbs:,} sequences of {layout.seq_len:,} "
        "tokens. Step times are those that the training prints in its log; nothing is added to them or left out."
    )
    yield f"Tokens/s = {layout.gbs:,} × {layout.seq_len:,} / step time; days for 1T tokens = 10¹² / tokens/s / 86,400."
    if estimate is not None:
        flops = f"{estimate.model_flops_per_sample:.4g}".replace("e+", "e")
        yield (
            f"TFLOPS of a GPU = {layout.gbs:,} × {flops} FLOPs / (step time × "
            f"{plan.selection.scale:,} GPUs), with the recipe's formula ({estimate.flops_formula}); MFU is that over a "
            f"peak of {estimate.peak_tflops:,.4g} TFLOPS in {plan.selection.dtype}."
        )
    yield "A deviation is that of a sample (÷ n − 1). Times of day are UTC."
    yield (
        f"What these numbers rest on is handed over by `llmb-tui export {result.id} -o FILE.tar.zst`, and checked "
        "anywhere by `llmb-tui verify`."
    )
    if one.state.log_unread:
        yield f"The end of its log was not copied from the cluster yet; `llmb-tui results {result.id}` does it."
    if one.state.log_removed:
        yield "The copy of its log was removed from this machine; what counts is what was read of it before."
    elif result.facts is None:
        yield "The whole log is not on this machine; what was folded from it while it was followed is what counts here."
    elif result.facts.starts > 1:
        yield f"The log has {result.facts.starts} starts of the training; the steps of the last one count."


def _listings(one: ReportedRun) -> Iterator[Block]:
    if one.script:
        yield Listing(f"What was submitted, {plural(len(one.script.splitlines()), 'line')}", one.script)
    if one.accounting:
        yield Listing(f"What {one.run.words.scheduler} said of it when it was over", one.accounting)
