"""Each rule for logs: its own examples in other guises, and the nearest texts that it must not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from llmb_tui.diagnosis.load import builtin_rules_dir, load_rules
from llmb_tui.diagnosis.prefixes import split_prefix
from llmb_tui.diagnosis.rule import Rule
from llmb_tui.watch.failure import LogCauses

FILES = load_rules([builtin_rules_dir()])
LOG_RULES = [rule for file in FILES for stage in ("any", "training") for rule in file.rules.of(stage)]


class Example(NamedTuple):
    rule: Rule
    text: str


EXAMPLES = [Example(rule, text) for rule in LOG_RULES for text in rule.examples if not rule.harmless]
GUISES: dict[str, Callable[[str], str]] = {
    "srun --label": lambda line: f"12: {line}",
    "rank": lambda line: f"[rank12]: {line}",
    "torchrun in NeMo-Run": lambda line: f"job-a/0 [default4]:{line}",
    "host and rank": lambda line: f"gpu-07: [rank12]: {line}",
    "time, host, task and rank": lambda line: f"2026-06-10 23:09:41,942 192.0.2.7: 12: [rank12]: {line}",
    "pod and CI": lambda line: f"2026-06-10T23:09:41.94Z [pod/run-1/pytorch] {line}",
}
BEFORE = [
    "[NeMo I 2026-01-18 07:39:41 nemo_logging:393] Setting up model",
    "cn001:12:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
    "WARNING:megatron.core:no error was found",
]
AFTER = [
    "[rank900]: torch.distributed.DistBackendError: NCCL error in: /x.cpp:2006, remote process exited",
    "srun: error: cn077: task 900: Exited with exit code 1",
    "slurmstepd: error: *** STEP 4711.0 ON cn013 CANCELLED AT 2026-05-04T10:11:12 ***",
]


def reasons_of(lines: list[str]) -> list[tuple[str, str]]:
    log = LogCauses()
    log.feed("".join(f"{line}\n" for line in lines).encode())
    return [(cause.what, cause.fix) for cause in log.causes()]


@pytest.mark.parametrize("guise", GUISES)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.text[:40])
def test_a_rule_reads_its_example_in_any_guise(example: Example, guise: str) -> None:
    if example.rule.patterns and "srun: " in example.text and "host" in guise:
        return  # pdsh names a host only before lines of programs on it
    bare = [split_prefix(line).text for line in example.text.splitlines()]
    plain = reasons_of(bare)
    assert reasons_of([GUISES[guise](line) for line in bare]) == plain
    mixed = [GUISES[guise](line) for line in [*BEFORE, *bare]]
    found = reasons_of([*mixed, *AFTER])
    if example.rule.weight != "end":
        assert found[0] == plain[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.text[:40])
def test_a_rule_finds_its_words_after_any_number_of_characters(example: Example) -> None:
    """Some patterns take quadratic time, so only an excerpt of a long line is read."""
    words = example.text.replace("\n", " ")
    assert reasons_of([f"{'a' * 20_000} {words}"]) == reasons_of([f"{'a' * 500} {words}"])


@pytest.mark.parametrize(
    ("line", "text", "rank", "node"),
    [
        ("0: [rank0]: Error", "Error", 0, None),
        ("[default1]:[rank5]:  File", " File", 5, None),
        ("llama/0 [default1]:x", "x", None, None),
        ("7: [default1]:x", "x", None, None),  # a task of torchrun is a node
        ("gpu-07: 12:     x", "    x", 12, "gpu-07"),
        ("cn001.cluster.example.org: x", "x", None, "cn001.cluster.example.org"),
        ("2026-06-10T23:09:41.9428001Z  [2026-06-10 23:09:41] iteration", "iteration", None, None),
        ("[ 8123.000316] NVRM: Xid", "NVRM: Xid", None, None),
        ("[1,4]<stderr>:x", "x", None, None),
        # Words of programs, which are no prefixes.
        ("srun: error: cn1: task 3: Killed", "srun: error: cn1: task 3: Killed", None, None),
        ("OSError: x", "OSError: x", None, None),
        ("python3: can't open file", "python3: can't open file", None, None),
        ("curl: (22) x", "curl: (22) x", None, None),
        ("    return fn(*args)", "    return fn(*args)", None, None),
    ],
)
def test_prefixes_are_removed_and_words_are_not(line: str, text: str, rank: int | None, node: str | None) -> None:
    prefixed = split_prefix(line)
    assert (prefixed.text, prefixed.rank, prefixed.node) == (text, rank, node)


@pytest.mark.parametrize(
    ("line", "not_this"),
    [
        ("RuntimeError: NCCL error in: x.cpp:1, unhandled cuda error, NCCL version 2.28.3", "GPU memory"),
        ("OSError: [Errno 28] No space left on device", "Shared memory"),
        ("PermissionError: [Errno 13] Permission denied: '/data/train/x'", "home directory"),
        ("[ERROR] URL https://registry-1.docker.io/v2/library/ubuntu/manifests/1 returned error code: 401", "no `#`"),
        ("pyxis: importing docker image: nvcr.io#nvidia/nemo:25.04", "Docker Hub"),
        ("NVRM: Xid (PCI:0000:3b:00): 31, pid=4211, name=python", "fell off"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "broken"),
        ("SignalException: Process 1 got signal: 15", "SIGHUP"),
        ("srun: error: cn011: task 44: Aborted (core dumped)", "segmentation"),
        ("cuDNN Error: CUDNN_STATUS_BAD_PARAM in Error", "no kernel"),
        ("mksquashfs Failed to read file /a/b, creating empty file: Error", "file system that cannot hold"),
        ("RuntimeError: vocab size (7) is not divisible by 2", "number of ranks"),
        (
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='pypi.org'): Max retries exceeded",
            "model hub",
        ),
    ],
)
def test_the_nearest_other_case_is_not_taken(line: str, not_this: str) -> None:
    assert all(not_this not in what for what, _ in reasons_of([line]))


def test_the_final_error_is_reported_before_a_retried_warning() -> None:
    found = reasons_of(
        [
            "WARNING: 429 Client Error: Too Many Requests for url: https://huggingface.co/api, retrying (attempt 1/5)",
            "ValueError: bad",
        ]
    )
    assert "not known here" in found[0][0]


def test_the_rank_that_torchrun_names_first_leads() -> None:
    block = ["Root Cause (first observed failure):", "[0]:", "  time      : 2026-01-01_00:00:01", "  host      : cn004"]
    block += ["  rank      : 3 (local_rank: 3)", "  exitcode  : 1 (pid: 7)", "=" * 60]
    log = LogCauses()
    lines = ["[rank0]: ValueError: second", "[rank3]: ValueError: first", *block]
    log.feed("".join(f"{line}\n" for line in lines).encode())
    assert log.causes()[0].line == "ValueError: first"


def test_open_records_and_causes_are_bounded() -> None:
    log = LogCauses()
    log.feed("".join(f"[rank{rank}]: ValueError: {rank}\n" for rank in range(3000)).encode())
    assert 0 < len(log.causes()) <= 1000
