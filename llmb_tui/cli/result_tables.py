"""What `results` prints of the objects that it made: short for a terminal, whole for a file, and one run in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llmb_tui.cli.runs import verdict_words
from llmb_tui.results.table import Cell, Column, Form, Table, cell_text
from llmb_tui.results.upstream_rules import Rule

Document = dict[str, Any]


def result_table(documents: Sequence[Document], rule: Rule, form: Form) -> Table:
    """A row for each, of CSV with all that is known; else by the recipe's rule only what goes on a line."""
    columns = _UPSTREAM if rule != "recipe" else _ALL if form == "csv" else _SHORT
    return Table.by(columns, documents)


def details(one: Document) -> Iterator[str]:
    """What a table has no room for, of one run."""
    result = one["result"]
    steady, estimate, published, loss = (result[name] for name in ("steady", "estimate", "published", "loss"))
    if steady:
        numbers = {name: cell_text(value) for name, value in steady.items()}
        deviation = f", deviation {numbers['stdev']} s" if steady["stdev"] is not None else ""
        yield (
            f"steady     mean {numbers['mean']} s, median {numbers['median']} s{deviation}: {numbers['count']} steps, "
            f"{numbers['low']} to {numbers['high']} s"
        )
    if estimate:
        band = f"{cell_text(estimate['low_s'])} to {cell_text(estimate['high_s'])}"
        yield f"expected   {cell_text(estimate['step_time_s'])} s ({band}), {estimate['anchor']}"
    if published:
        yield f"printed    {cell_text(published['step_time_s'])} s, {published['source']}"
    if result["days_per_1t_tokens"]:
        yield f"1T tokens  {cell_text(result['days_per_1t_tokens'])} days"
    if logged := result["logged_tflops_per_gpu"]:
        yield f"log says   {cell_text(logged['mean'])} TFLOPS on each GPU"
    if loss:
        first = loss["against_first"]
        beside = f"; {first['last_pct']:+.2g} % from run {first['run']} at step {first['step']}" if first else ""
        yield f"loss       {loss['words']}{beside}"
    for checkpoint in result["checkpoints"]:
        at = "" if checkpoint["iteration"] is None else f" at iteration {checkpoint['iteration']}"
        yield f"checkpoint {checkpoint['kind']} {cell_text(checkpoint['seconds'])} s{at}"
    if result["nodes"]:
        yield f"nodes      {result['nodes']}"
    if result["restarts"]:
        yield f"restarts   {result['restarts']}"
    for log in result["earlier_logs"]:
        yield f"before it  {log}"


def _steps(one: Document) -> Cell:
    return f"{one['steps_done']}/{one['steps_total'] or '?'}"


def _verdict(one: Document) -> Cell:
    verdict = one["verdict"]
    if verdict["result"] is None:
        return _reasons(one)
    return verdict_words(verdict["result"], verdict["ratio"], verdict["reasons"])


def _reasons(one: Document) -> str:
    return " ".join(one["verdict"]["reasons"])


def _checkpoint(kind: str) -> Callable[[Document], Cell]:
    """The slowest: the others waited for it."""
    return lambda one: max((c["seconds"] for c in one["result"]["checkpoints"] if c["kind"] == kind), default=None)


_SHORT: tuple[Column, ...] = (
    ("run or log", "id"),
    ("procedure", "procedure"),
    ("state", "state"),
    ("steps", _steps),
    ("median s", "median_step_time_s"),
    ("step s", "step_time_s"),
    ("expected s", "result.estimate.step_time_s"),
    ("tokens/s", "result.tokens_per_s"),
    ("TFLOPS/GPU", "result.tflops_per_gpu"),
    ("MFU %", "result.mfu_pct"),
    ("verdict", _verdict),
)
_ALL: tuple[Column, ...] = (
    ("id", "id"),
    *((name, f"selection.{name}") for name in ("workload", "release", "size", "gpu", "dtype", "scale")),
    *((name, name) for name in ("cluster", "procedure", "state", "steps_done", "steps_total", "rule")),
    *((name, name) for name in ("step_time_s", "median_step_time_s", "last_step_time_s")),
    *((f"steady_{name}_s", f"result.steady.{name}") for name in ("mean", "median", "stdev", "low", "high")),
    ("expected_s", "result.estimate.step_time_s"),
    ("expected_by", "result.estimate.method"),
    ("published_s", "result.published.step_time_s"),
    *((name, f"result.{name}") for name in ("tokens_per_s", "tflops_per_gpu", "mfu_pct", "days_per_1t_tokens")),
    ("logged_tflops_per_gpu", "result.logged_tflops_per_gpu.mean"),
    ("loss", "result.loss.words"),
    ("loss_against_first_pct", "result.loss.against_first.last_pct"),
    ("checkpoint_save_s", _checkpoint("save")),
    ("checkpoint_load_s", _checkpoint("load")),
    ("restarts", "result.restarts"),
    ("nodes", "result.nodes"),
    *((name, f"verdict.{name}") for name in ("result", "ratio", "against")),
    ("reasons", _reasons),
)
_UPSTREAM: tuple[Column, ...] = (
    ("run or log", "id"),
    ("rule", "result.upstream.rule"),
    ("status", "result.upstream.status"),
    ("mean s", "result.upstream.step_time_mean_s"),
    ("stdev s", "result.upstream.step_time_stdev_s"),
    ("TFLOPS/GPU", "result.upstream.tflops_per_gpu_mean"),
    ("TFLOPS stdev", "result.upstream.tflops_per_gpu_stdev"),
    ("samples", "result.upstream.samples"),
)
