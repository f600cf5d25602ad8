"""The answers about a cluster and its files: checks, fetched files, and this machine's copies of logs."""

from __future__ import annotations

from pathlib import Path

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.cluster_check import cluster_check
from llmb_tui.answers.fetched_files import fetched_files
from llmb_tui.answers.local_logs import pruned_logs
from llmb_tui.answers.writers.rows import rows
from llmb_tui.cluster_files.fetch import Fetched
from llmb_tui.cluster_files.left_files import LeftFile, LeftFiles
from llmb_tui.cluster_files.nsight import KernelTime, ProfileSummary
from llmb_tui.cluster_files.prune import LocalLogs, LogCopies
from llmb_tui.preflight.report import Check, Preflight
from tests.kit.runs import make_run

NOW = 1_759_999_000.0


def lines(answer: Answer) -> list[str]:
    return [row.text for row in rows(answer.make_blocks()) if row.text]


def test_a_failed_check_comes_before_a_warning_with_its_fix() -> None:
    report = Preflight(
        (
            Check("quota", "Your quota", "warning", "4 GB", "40 GB", "It may not be enough."),
            Check("python", "Python", "ok", "3.11", "3.9", ""),
            Check("disk", "Free space", "failed", "1 GB", "60 GB", "Free some space."),
        )
    )
    answer = cluster_check("eos", report)
    heading, *checks, first, second, summary = lines(answer)
    assert heading.split() == ["state", "check", "found"]
    assert [line.split()[0] for line in checks] == ["warning", "ok", "failed"]
    assert first == "✗ failed: Free space (needed: 60 GB): Free some space."
    assert second == "! warning: Your quota (needed: 40 GB): It may not be enough."
    assert summary == "eos: 1 ok, 1 warning, 1 failed: not ready"
    (document, *_) = answer.make_document()["checks"]
    assert list(document) == ["id", "title", "status", "found", "needed", "mend", "variables"]


def test_files_that_were_not_fetched_count_in_no_sum() -> None:
    files = tuple(LeftFile(name, "log", size) for name, size in (("a.log", 3000), ("b.log", 500)))
    left = LeftFiles("/lustre/task", files, (("s.out", "It holds tokens."),))
    profile = ("p.nsys-rep", ProfileSummary((KernelTime("k" * 200, 61.5, 1.25, 12_000),), 2.0, 33.0))
    done = (Fetched(files[0], "fetched", 3000), Fetched(files[1], "refused"))
    heading, fetched, refused, count, note, caption, _, kernel = lines(
        fetched_files("r1", left, Path("here"), done, profile)
    )
    assert heading.split() == ["file", "kind", "size", "state"]
    assert (fetched.split()[-1], refused.split()[-1]) == ("fetched", "refused")
    assert count == "1 file in here, 3 kB of it fetched now."
    assert note == "· note: s.out was not fetched. It holds tokens."
    assert caption == "p.nsys-rep: 2 s of kernel time, 33.0 % of it in NCCL. Longest kernels:"
    assert kernel.split() == ["61.5", "1.25", "12,000", "k" * 100]
    nothing = fetched_files("r1", LeftFiles("/lustre/task", ()), Path("here"), (), None)
    assert lines(nothing) == ["No files of the requested kinds in /lustre/task."]


def test_remaining_logs_are_a_table_and_removed_logs_are_named() -> None:
    first, second = (LogCopies(make_run(name), ("log",), 2_000_000, NOW) for name in ("first", "second"))
    logs = LocalLogs((first, second), {"third": "Suite s is active."})
    removed, heading, row, *_, text = lines(pruned_logs(logs, [first], NOW))
    assert removed.startswith("1 log (2 MB) removed")
    assert removed.endswith(": first")
    assert heading.split()[0] == "run"
    assert (row.split()[0], row.endswith("2 MB")) == ("second", True)
    assert text == "· note: The log of run third is kept. Suite s is active."
    assert lines(pruned_logs(LocalLogs(), (), NOW)) == ["No log can be removed."]
