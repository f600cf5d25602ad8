"""`assess_comparability`: decides whether runs may be compared, and for what. Differences are refusals or warnings.

A step time depends on everything that `_ASPECTS` lists. The purpose of a comparison decides which aspects may differ:
the number of GPUs between scales, the precision between precisions. Any other difference is a refusal if it makes the
step times incomparable, and a warning if it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from llmb_tui.analysis.result import RunResult
from llmb_tui.catalog.recipe import VARIANT_WORDS
from llmb_tui.language.text import plural
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.selection import FIELDS

Purpose = Literal["repeats", "changes", "clusters", "layouts", "precisions", "scales", "releases", "gpus"]
Aspect = Literal[
    "model", "layers", "sequence length", "GPU type", "GPUs", "batch", "precision", "variant", "layout", "release",
    "container", "formula", "procedure", "options", "extras", "rule", "steps", "cluster",
]  # fmt: skip
PURPOSES: dict[Purpose, str] = {
    "repeats": "repeats of one configuration",
    "changes": "before and after",
    "clusters": "different clusters",
    "layouts": "different layouts",
    "precisions": "different precisions",
    "scales": "scaling",
    "releases": "different releases",
    "gpus": "different GPU types",
}
"""Purposes of a comparison and their texts; the first of those that suit the runs equally well is chosen."""
_MAY_DIFFER: dict[Purpose, frozenset[Aspect]] = {
    "repeats": frozenset(),
    "changes": frozenset(("container",)),
    "clusters": frozenset(("cluster", "container")),
    "scales": frozenset(("GPUs", "batch", "layout")),
    "precisions": frozenset(("precision", "variant", "layout")),
    "layouts": frozenset(("layout",)),
    "releases": frozenset(("release", "container", "layout")),
    "gpus": frozenset(("GPU type", "cluster", "container", "layout")),
}
_REFUSED: frozenset[Aspect] = frozenset(
    ("model", "layers", "sequence length", "GPU type", "GPUs", "batch", "precision", "layout", "options")
)
"""Aspects whose difference is refused; any other one is a warning."""
_CHOSEN: tuple[Aspect, ...] = (
    "model", "release", "precision", "variant", "GPUs", "GPU type", "layout", "options", "extras", "cluster",
    "procedure",
)  # fmt: skip
"""Aspects that the user chooses; all others follow from them."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Remark:
    """One aspect in which runs differ."""

    aspect: Aspect
    words: str
    """One or two sentences."""
    refused: bool
    """Whether this difference makes the step times incomparable."""


@dataclass(frozen=True, slots=True)
class Comparability:
    """Whether some runs may be compared for a purpose."""

    purpose: Purpose
    refusals: tuple[Remark, ...]
    """Reasons against the comparison; empty if it is allowed."""
    warnings: tuple[Remark, ...]
    """Remarks that must accompany the figures of a comparison."""

    @property
    def comparable(self) -> bool:
        """Whether the comparison is allowed."""
        return not self.refusals


def assess_comparability(runs: Sequence[RunResult], *purposes: Purpose) -> Comparability:
    """Compare the runs' settings for the purpose, of these or of all, with the fewest refusals, then warnings."""
    differ, candidates = list(_remarks(runs)), []
    for purpose in purposes or PURPOSES:
        remarks = [remark for remark in differ if remark.aspect not in _MAY_DIFFER[purpose]]
        remarks += _mixed_scaling(runs) if purpose == "scales" else []
        refusals = tuple(remark for remark in remarks if remark.refused)
        candidates.append(Comparability(purpose, refusals, tuple(remark for remark in remarks if not remark.refused)))
    return min(candidates, key=lambda candidate: (len(candidate.refusals), len(candidate.warnings)))


def _remarks(runs: Sequence[RunResult]) -> Iterator[Remark]:
    for aspect, (value, begins, ends) in _ASPECTS.items():
        by_value: dict[str, list[str]] = {}
        for run in runs:
            if word := value(run):
                by_value.setdefault(word, []).append(run.id)
        if len(by_value) > 1:
            differ = ", ".join(f"{word} ({run_names(ids)})" for word, ids in by_value.items())
            yield Remark(aspect, f"{begins}: {differ}. {ends}".rstrip(), aspect in _REFUSED)


def distinctions(runs: Sequence[RunResult]) -> tuple[str, ...]:
    """Short text for each run that distinguishes it from the others; empty if no chosen aspect differs."""
    words: list[list[str]] = [[] for _ in runs]
    for aspect in _CHOSEN:
        values = [aspect_words(run, aspect) for run in runs]
        if len(set(values)) > 1:
            for i, value in enumerate(values):
                words[i].append(value)
    return tuple(" · ".join(filter(None, named)) for named in words)


def run_names(ids: Sequence[str]) -> str:
    """Ids of runs, or their number if there are many."""
    return ", ".join(ids) if len(ids) <= _MOST_NAMED else plural(len(ids), "run")


def aspect_words(run: RunResult, aspect: Aspect) -> str:
    """Text of one aspect of a run."""
    return _ASPECTS[aspect][0](run)


def _mixed_scaling(runs: Sequence[RunResult]) -> list[Remark]:
    """Remark if the batch follows no rule over scales: it should grow with the GPUs, or stay constant."""
    batches = {(run.configuration.scale, run.configuration.layout.gbs) for run in runs}
    weak = len({gbs / gpus for gpus, gbs in batches}) == 1
    strong = len({gbs for _, gbs in batches}) == 1
    if weak or strong:
        return []
    text = ", ".join(f"{gbs} on {plural(gpus, 'GPU')}" for gpus, gbs in sorted(batches))
    if len({gpus for gpus, _ in batches}) < len(batches):
        return [Remark("batch", f"One scale has several global batch sizes: {text}.", refused=True)]
    # Some published tables mix the rules too.
    words = (
        f"The global batch neither grows with the GPUs nor stays constant: {text}. Compare tokens/s, not step times."
    )
    return [Remark("batch", words, refused=False)]


def _model(run: RunResult) -> str:
    """Model and size; some releases repeat the size in the workload."""
    configuration = run.configuration
    return f"{configuration.workload.removesuffix(f'-{configuration.size}')} {configuration.size}"


def _layout(run: RunResult) -> str:
    layout = run.configuration.layout
    names = ("tp", "pp", "cp", "ep", "vp", "mbs")
    return " ".join(f"{name.upper()} {getattr(layout, name)}" for name in names if getattr(layout, name) is not None)


def _formula(run: RunResult) -> str:
    return run.plan.estimate.flops_formula if run.plan.estimate else "none"


def _did(*names: str) -> Callable[[RunResult], str]:
    """Function for the text of the options, among these, that a run used."""

    def used_options(run: RunResult) -> str:
        labels = [FIELDS[name].label for name in names if getattr(run.configuration.options, name)]
        return " and ".join(labels) or "none"

    return used_options


_ASPECTS: dict[Aspect, tuple[Callable[[RunResult], str], str, str]] = {
    "model": (_model, "The models differ", ""),
    "layers": (lambda run: plural(run.configuration.layout.layers, "layer"), "The numbers of layers differ", ""),
    "sequence length": (lambda run: f"{run.configuration.layout.seq_len}", "The sequence lengths differ", ""),
    "GPU type": (lambda run: run.configuration.gpu.upper(), "The GPU types differ", ""),
    "GPUs": (lambda run: plural(run.configuration.scale, "GPU"), "The numbers of GPUs differ", ""),
    "batch": (lambda run: f"{run.configuration.layout.gbs}", "The global batch sizes differ", ""),
    "precision": (lambda run: run.configuration.dtype, "The precisions differ", ""),
    "variant": (
        lambda run: "" if run.configuration.dtype == "bf16" else VARIANT_WORDS[run.configuration.precision_variant],
        "The scaling methods of the precision differ",
        "The step time depends on it.",
    ),
    "layout": (_layout, "The layouts differ", ""),
    "options": (_did("profile", "nccl_trace", "load_checkpoint"), "Options that slow a run down differ", ""),
    "extras": (_did("save_checkpoint", "hub_tokenizer"), "Options of the recipe differ", ""),
    "release": (lambda run: run.configuration.release, "The releases of the recipe differ", ""),
    "container": (lambda run: run.plan.container or "unknown", "The containers differ", ""),
    "formula": (
        _formula,
        "The formulas for FLOPs differ",
        "Compare step times and tokens/s, not TFLOPS and MFU.",
    ),
    "procedure": (
        lambda run: PROCEDURES[run.procedure].title,
        "The launch methods differ",
        "Their settings are not always the same.",
    ),
    "rule": (
        lambda run: run.rule_words,
        "The recipes count different steps",
        "The medians of the steps that count in each are compared.",
    ),
    "steps": (lambda run: plural(run.steps_total, "step"), "The numbers of steps differ", ""),
    "cluster": (lambda run: run.cluster, "The clusters differ", ""),
}
"""Compared aspects of runs: a function for the value's text, empty if there is none; beginning and end of a
sentence."""
