"""`statements`: facts besides the steps that a log states about a start of the training, and signs of a new start.

The words are those of NeMo, Lightning, Megatron, NCCL, Slurm and our own entry script.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import BinaryIO

from llmb_tui.watch.lines import display_text
from llmb_tui.watch.state import Statement, StatementKind

LINE_LENGTH = 400
"""Characters of a line that is quoted."""
_PIECE = 1 << 18
_MOST = 64
"""Maximum number of statements of one kind that are kept for a start."""

WEAK, STRONG = 1, 2
"""Strength of a sign of a new start: a weak one needs a repeated step after it, a strong one any step."""

# Long words, because a search is the faster the longer its word is and the whole log is searched for these. Every
# restart of NeMo 1, NeMo 2 and Megatron-Bridge prints one of the first two. A cancelled training may still write a step
# or two before it ends; a job that lost a node does not.
_SIGNS = (
    (b"Starting with ", re.compile(rb"All distributed processes registered\. Starting with \d{1,9} processes"), STRONG),
    (b"Starting training loop at", re.compile(rb"Starting training loop at iteration \d{1,15}"), STRONG),
    (b"Restoring states from", re.compile(rb"Restoring states from the checkpoint"), STRONG),
    (b"CANCELLED AT", re.compile(rb"CANCELLED AT \S{1,40} DUE TO (?!TIME LIMIT)"), STRONG),
    (b"CANCELLED AT", re.compile(rb"CANCELLED AT \S{1,40} DUE TO TIME LIMIT"), WEAK),
)
_SIGNS_BY_MARKER = {
    marker: [(pattern, strength) for word, pattern, strength in _SIGNS if word == marker] for marker, *_ in _SIGNS
}
_BEGIN, _END = rb"(?:\A|(?<=[\r\n]))", rb"(?=[\r\n]|\Z)"
"""Ends of a line. Progress bars end theirs with a carriage return."""
_OURS = ("NeMo", "Megatron Core", "PyTorch", "CUDA", "NCCL", "Transformer Engine", "NVIDIA driver")
VERSIONS = (
    *(
        (f"{name} ".encode(), name.removeprefix("NVIDIA "), re.compile(_BEGIN + name.encode() + rb" (\d\S*)" + _END))
        for name in _OURS
    ),
    (b"GSW: MODEL=", "container", re.compile(_BEGIN + rb"GSW: MODEL=[^\r\n]* IMAGE='([^'\r\n]*)'")),
    (b"GSW: MODEL=", "framework", re.compile(_BEGIN + rb"GSW: MODEL=[^\r\n]* FW_VERSION=(\S+)")),
    (b"GSW: MODEL=", "recipe", re.compile(_BEGIN + rb"GSW: MODEL=[^\r\n]* GSW_VERSION=(\S+)")),
    (b"NCCL version ", "NCCL", re.compile(rb"\bNCCL version (\d+\.\d+\.\d+)\+cuda\d+\.\d+")),
    (b"cudaDriverVersion ", "CUDA of the driver", re.compile(rb"\bcudaDriverVersion (\d{4,6})\b")),
    (
        b" was detected",
        "driver",
        re.compile(rb"\bNVIDIA Driver Release \S+ or later, but\s+version (\d\S+) was detected"),
    ),
)
"""(marker that the text must contain, name, pattern of the value), in the words of the program that prints it: our
entry script; the recipes of 24.11 to 25.02 (upstream.md, 3.2); NCCL, if NCCL_DEBUG asks for it (NVIDIA/nccl issue
1212); the entry script of NVIDIA's containers, if the driver is too old for them (NVIDIA/nvidia-docker issue 1479)."""

SETTINGS = frozenset(
    (
        *(f"model.config.{name}" for name in ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads")),
        *(f"model.config.{name}" for name in ("num_query_groups", "seq_length", "enable_cuda_graph")),
        *(f"model.config.recompute_{name}" for name in ("granularity", "method", "num_layers", "modules")),
        *(f"data.{name}" for name in ("seq_length", "micro_batch_size", "global_batch_size")),
        *(f"trainer.strategy.{name}_model_parallel_size" for name in ("tensor", "pipeline", "virtual_pipeline")),
        *(f"trainer.strategy.{name}" for name in ("context_parallel_size", "expert_model_parallel_size")),
        "trainer.strategy.sequence_parallel",
        *(f"trainer.strategy.ddp.overlap_{name}" for name in ("grad_reduce", "param_gather")),
        *(f"optim.config.{name}" for name in ("use_distributed_optimizer", "overlap_param_gather_with_optimizer_step")),
        *(f"trainer.plugins.{name}" for name in ("fp8", "fp8_recipe")),
    )
)
"""Fields of NeMo's recipe that the step time depends on."""

_SETTING = re.compile(_BEGIN + rb"((?:model|data|trainer|optim)\.[\w.]{1,100}) = ([^\r\n]{1,200})" + _END)
_RANKS = re.compile(rb"All distributed processes registered\. Starting with (\d{1,9}) processes")
_LAYOUT = re.compile(rb"\bDP: (\d{1,9}); TP: \d{1,9}(?:; [A-Z]{2}: (?:\d{1,9}|None)){1,8}")
_DEVICE = re.compile(rb"\bCUDA device \('([^'\r\n]{1,100})'\)")
_NODE_GPUS = re.compile(_BEGIN + rb"(?:\d+: )?GPUs of node (\S{1,255}): ([^\r\n]{1,300})")
_SMI = re.compile(_BEGIN + rb"(?:\d+: )?GPU \d{1,3}: (\S[^(\r\n]{1,80}) \(UUID: ")
_SMI_SLICE = re.compile(_BEGIN + rb"(?:\d+: )?  (MIG \S{1,40}) +Device +\d{1,3}: \(UUID: ")
_NETWORK = re.compile(rb"NCCL INFO (?:Channel \S+ : )?Using network (\S[^\r\n]{0,60})")
_CHANNEL = re.compile(
    rb"NCCL INFO Channel \d{1,4}(?:/\d{1,4})? : (\d{1,9})(?:\[\w+\])? -> (\d{1,9})(?:\[\w+\])?"
    rb" (?:\[(?:send|receive)\] )?via (NET/[\w-]{1,40})"
)

# (marker that the text must contain, pattern of the words). The first line of each kind is kept.
_SLOW = (
    (b"Socket", re.compile(rb"NCCL INFO (?:Using network Socket|[^\r\n]{1,200}via NET/Socket)")),
    (b"NET/", re.compile(rb"NET/(?:OFI|IB|Plugin)[^\r\n]{0,200}(?:initialization failed|No device found|ailed to)")),
    (b"hrottl", re.compile(rb"[Cc]locks?[ _](?:[Ee]vent[ _][Rr]easons|[Tt]hrottl)|[Tt]hrottl(?:ed|ing)")),
    (b"lowdown", re.compile(rb"(?:[HS]W|Hardware|Software)(?: Thermal)? Slowdown\s*:\s*Active")),
    (
        b"etry",
        re.compile(rb"NCCL WARN [^\r\n]{0,200}[Rr]etry|\b[Rr]etrying\b[^\r\n]{0,80}(?:onnect|NCCL|IB|send|recv)"),
    ),
)


def start_signs(text: bytes, begin: int, end: int) -> list[tuple[int, int]]:
    """(offset, strength) of the words in text[begin:end] that only a new start of the training writes, in order."""
    found = []
    for marker, signs in _SIGNS_BY_MARKER.items():
        if text.find(marker, begin, end) >= 0:
            found += [(m.start(), strength) for pattern, strength in signs for m in pattern.finditer(text, begin, end)]
    return sorted(found)


def add_slow_signs(signs: dict[int, str], file: BinaryIO, size: int) -> None:
    """Search the next `size` bytes for lines that may explain a slow run; add the first of each kind to `signs`."""
    rest = b""
    while size > 0 and (data := file.read(min(size, _PIECE))):
        size -= len(data)
        text = rest + data
        for kind, (marker, pattern) in enumerate(_SLOW):
            if kind not in signs and marker in text and (match := pattern.search(text)):
                signs[kind] = line_at(text, match.start())
        rest = text[text.rfind(b"\n") + 1 :][-_PIECE:]


def statements(text: bytes) -> Iterator[Statement]:
    """Facts that complete lines state, in order of the lines."""
    return (Statement(kind, name, value, line_at(text, at)) for at, kind, name, value in sorted(_facts(text)))


def _facts(text: bytes, kinds: Collection[StatementKind] = ()) -> Iterator[tuple[int, StatementKind, str, str]]:
    """(offset, kind, name, value) of each fact of these kinds; of all kinds if none is given."""
    for marker, kind, pattern, read in _READERS:
        if (not kinds or kind in kinds) and marker in text:
            for match in pattern.finditer(text):
                for name, value in read(match):
                    yield match.start(), kind, name, value
    if not kinds or "version" in kinds:
        for name, value, at in versions(text):
            yield at, "version", name, value


def versions(text: bytes) -> Iterator[tuple[str, str, int]]:
    """(name, version, offset) of each library that the lines name."""
    for marker, name, pattern in VERSIONS:
        if marker in text:
            for match in pattern.finditer(text):
                value = display_text(match[1])
                if name == "CUDA of the driver":  # 12.2 is 12020
                    value = f"{int(value) // 1000}.{int(value) % 1000 // 10}"
                yield name, value, match.start()


def with_statements(
    before: tuple[Statement, ...], text: bytes, kinds: Collection[StatementKind] = ()
) -> tuple[Statement, ...]:
    """Add the statements of these lines to those of `before`: each fact once, and of a kind only as many as needed.

    A line is cleaned for display only if it is kept, because a log has thousands of NCCL channels. `kinds`: the kinds
    to search for, if not all.
    """
    kept = {statement[:3]: statement for statement in before}
    counts = Counter(_bounded_by(statement.kind, statement.value) for statement in before)
    full = {group for group, count in counts.items() if count >= _MOST}
    for at, kind, name, value in sorted(
        fact for fact in _facts(text, kinds) if _bounded_by(fact[1], fact[3]) not in full
    ):
        group = _bounded_by(kind, value)
        if (kind, name, value) not in kept and counts[group] < _MOST:
            kept[kind, name, value] = Statement(kind, name, value, line_at(text, at))
            counts[group] += 1
    return tuple(sorted(kept.values()))  # the same order, however the bytes were cut into pieces


def line_at(text: bytes, at: int) -> str:
    """Displayable text of the line at an offset, at most `LINE_LENGTH` characters."""
    low, high = max(0, at - 4 * LINE_LENGTH), at + 4 * LINE_LENGTH
    start = max(text.rfind(b"\n", low, at), text.rfind(b"\r", low, at)) + 1 or low
    ends = [end for mark in (b"\n", b"\r") if (end := text.find(mark, at, high)) >= 0]
    line = display_text(text[start : min(ends, default=high)])
    return line if len(line) <= LINE_LENGTH else f"{line[: LINE_LENGTH - 1]}…"


def _bounded_by(kind: StatementKind, value: str) -> tuple[str, str]:
    """Group whose size is limited. Channels count by transport: many over InfiniBand must not hide one over sockets."""
    return kind, value if kind == "channel" else ""


_Pairs = Iterable[tuple[str, str]]


def _value(match: re.Match[bytes]) -> _Pairs:
    return [("", display_text(match[1]).strip())]


def _node_gpus(match: re.Match[bytes]) -> _Pairs:
    counted = (part.partition(" × ") for part in display_text(match[2]).split(", "))
    return [("", name.strip()) for _, _, name in counted if name]


def _layout(match: re.Match[bytes]) -> _Pairs:
    return [("", display_text(match[0]))]


def _setting(match: re.Match[bytes]) -> _Pairs:
    name = match[1].decode("ascii", "replace")
    return [(name, display_text(match[2]).strip())] if name in SETTINGS else []


def _channel(match: re.Match[bytes]) -> _Pairs:
    return [(f"{int(match[1])} -> {int(match[2])}", match[3].decode("ascii"))]


_READERS: tuple[tuple[bytes, StatementKind, re.Pattern[bytes], Callable[[re.Match[bytes]], _Pairs]], ...] = (
    (b"Starting with ", "ranks", _RANKS, _value),
    (b"DP: ", "layout", _LAYOUT, _layout),
    (b"CUDA device (", "gpu", _DEVICE, _value),
    (b"GPUs of node ", "gpu", _NODE_GPUS, _node_gpus),
    (b"(UUID: ", "gpu", _SMI, _value),
    (b"(UUID: ", "gpu", _SMI_SLICE, _value),
    (b" = ", "setting", _SETTING, _setting),
    (b"Using network ", "network", _NETWORK, _value),
    (b" via NET/", "channel", _CHANNEL, _channel),
)
