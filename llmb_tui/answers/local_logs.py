"""`pruned_logs`: this machine's copies of logs that can be removed, and those that were removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Column, Table, quantity
from llmb_tui.cluster_files.prune import LocalLogs, LogCopies
from llmb_tui.language.instants import local_day
from llmb_tui.language.labels import run_label
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.states import severity_label
from llmb_tui.language.text import plural


def log_table(logs: Sequence[LogCopies], now: float) -> Grid:
    """A table of logs with their runs; `now` is Unix time."""
    columns = (
        Column("run", "run.id"),
        Column("workload", _workload),
        Column("cluster", "run.cluster"),
        Column("last line", lambda log: local_day(log.grew_at, now)),
        Column("files", lambda log: " ".join(log.names)),
        Column("size", quantity("size", byte_size)),
    )
    return Grid("", Table.by(columns, logs))


def pruned_logs(logs: LocalLogs, removed: Sequence[LogCopies], now: float) -> Answer:
    """The removed logs, and the logs that can still be removed or must be kept; `now` is Unix time."""
    return Answer(
        "Copies of logs on this machine",
        lambda: tuple(_blocks(logs, removed, now)),
        lambda: {
            "logs": [*map(_document, logs.removable)],
            "kept": dict(logs.kept),
            "removed": [log.run.id for log in removed],
        },
    )


def count_and_size(logs: Sequence[LogCopies]) -> str:
    """Number and total size of logs."""
    return f"{plural(len(logs), 'log')} ({byte_size(sum(log.size for log in logs))})"


def _blocks(logs: LocalLogs, removed: Sequence[LogCopies], now: float) -> Iterator[Block]:
    remaining = [log for log in logs.removable if log not in removed]
    if removed:
        ids = ", ".join(log.run.id for log in removed)
        yield Text(f"{count_and_size(removed)} removed, of runs whose verdicts and step times are kept: {ids}")
    if remaining:
        yield log_table(remaining, now)
        yield Text(
            "Only these copies are removed: runs, plans, results, verdicts and the logs on the clusters are kept."
        )
    elif not removed:
        yield Text("No log can be removed.")
    if logs.kept:
        label = severity_label("note")
        yield Remarks(
            tuple(Remark(label, f"The log of run {run_id} is kept. {why}") for run_id, why in logs.kept.items())
        )


def _workload(log: LogCopies) -> str:
    selection = log.run.plan.selection
    return run_label(selection.workload, selection.size, selection.dtype, selection.scale, selection.gpu)


def _document(log: LogCopies) -> dict[str, object]:
    run, files = log.run, list(log.names)
    return {"id": run.id, "cluster": run.cluster, "files": files, "bytes": log.size, "grew_at": log.grew_at}
