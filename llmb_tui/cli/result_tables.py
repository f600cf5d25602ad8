"""What `results` prints of the objects that it made: short for a terminal, whole for a file, and one run in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llmb_tui.cli.runs import verdict_words
from llmb_tui.results.table import Cell, Form, Table, cell_text
from llmb_tui.results.upstream_rules import Rule

Document = dict[str, Any]


def result_table(documents: Sequence[Document], rule: Rule, form: Form) -> Table:
    """A row for each, of CSV with all that is known; else by the recipe's rule only what goes on a line."""
    columns = _UPSTREAM if rule != "recipe" else _ALL if form == "csv" else _SHORT
    return Table.of([heading for heading, _ in columns], [[value(one) for _, value in columns] for one in documents])


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


def _of(*keys: str) -> Callable[[Document], Cell]:
    """What stands there in the object; None where one of these is null."""

    def value(one: Document) -> Cell:
        found: Any = one
        for key in keys:
            found = None if found is None else found.get(key)
        return found if isinstance(found, (int, float)) or found is None else str(found)

    return value


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


_Columns = tuple[tuple[str, Callable[[Document], Cell]], ...]
_SHORT: _Columns = (
    ("run or log", _of("id")),
    ("procedure", _of("procedure")),
    ("state", _of("state")),
    ("steps", _steps),
    ("median s", _of("median_step_time_s")),
    ("step s", _of("step_time_s")),
    ("expected s", _of("result", "estimate", "step_time_s")),
    ("tokens/s", _of("result", "tokens_per_s")),
    ("TFLOPS/GPU", _of("result", "tflops_per_gpu")),
    ("MFU %", _of("result", "mfu_pct")),
    ("verdict", _verdict),
)
_ALL: _Columns = (
    ("id", _of("id")),
    *((name, _of("selection", name)) for name in ("workload", "release", "size", "gpu", "dtype", "scale")),
    *((name, _of(name)) for name in ("cluster", "procedure", "state", "steps_done", "steps_total", "rule")),
    *((name, _of(name)) for name in ("step_time_s", "median_step_time_s", "last_step_time_s")),
    *((f"steady_{name}_s", _of("result", "steady", name)) for name in ("mean", "median", "stdev", "low", "high")),
    ("expected_s", _of("result", "estimate", "step_time_s")),
    ("expected_by", _of("result", "estimate", "method")),
    ("published_s", _of("result", "published", "step_time_s")),
    *((name, _of("result", name)) for name in ("tokens_per_s", "tflops_per_gpu", "mfu_pct", "days_per_1t_tokens")),
    ("logged_tflops_per_gpu", _of("result", "logged_tflops_per_gpu", "mean")),
    ("loss", _of("result", "loss", "words")),
    ("loss_against_first_pct", _of("result", "loss", "against_first", "last_pct")),
    ("checkpoint_save_s", _checkpoint("save")),
    ("checkpoint_load_s", _checkpoint("load")),
    ("restarts", _of("result", "restarts")),
    ("nodes", _of("result", "nodes")),
    *((name, _of("verdict", name)) for name in ("result", "ratio", "against")),
    ("reasons", _reasons),
)
_UPSTREAM: _Columns = (
    ("run or log", _of("id")),
    ("rule", _of("result", "upstream", "rule")),
    ("status", _of("result", "upstream", "status")),
    ("mean s", _of("result", "upstream", "step_time_mean_s")),
    ("stdev s", _of("result", "upstream", "step_time_stdev_s")),
    ("TFLOPS/GPU", _of("result", "upstream", "tflops_per_gpu_mean")),
    ("TFLOPS stdev", _of("result", "upstream", "tflops_per_gpu_stdev")),
    ("samples", _of("result", "upstream", "samples")),
)
