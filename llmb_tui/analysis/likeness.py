"""`likeness`: may these runs be compared, and for what? What differs is refused or remarked in words. Pure.

A step time depends on everything that `_ASPECTS` lists. The purpose of a comparison says what of that may differ: over
scales the number of GPUs, between precisions the precision. What else differs is a refusal where the step times of the
runs have nothing to do with each other then, and a warning where they do.
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
    "changes": "before against after",
    "clusters": "cluster against cluster",
    "layouts": "layout against layout",
    "precisions": "precision against precision",
    "scales": "scaling",
    "releases": "release against release",
    "gpus": "GPU type against GPU type",
}
"""What runs may be compared for, in words; of those that suit runs equally well the first is chosen."""
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
"""All else is a warning."""
_CHOSEN: tuple[Aspect, ...] = (
    "model", "release", "precision", "variant", "GPUs", "GPU type", "layout", "options", "extras", "cluster",
    "procedure",
)  # fmt: skip
"""What all other aspects follow from."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Remark:
    """One respect in which runs are not alike."""

    aspect: Aspect
    words: str
    """A sentence or two."""
    refused: bool
    """The step times of the runs have nothing to do with each other then."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """Whether some runs may be compared for a purpose."""

    purpose: Purpose
    refusals: tuple[Remark, ...]
    """Why they may not; none: they may."""
    warnings: tuple[Remark, ...]
    """What a comparison has to say beside its numbers."""

    @property
    def comparable(self) -> bool:
        """True where nothing forbids it."""
        return not self.refusals


def likeness(runs: Sequence[RunResult], *purposes: Purpose) -> Likeness:
    """Of runs for that of these purposes, or of all, which has least to refuse, and then to warn of."""
    differ, found = list(_remarks(runs)), []
    for purpose in purposes or PURPOSES:
        remarks = [remark for remark in differ if remark.aspect not in _MAY_DIFFER[purpose]]
        remarks += _mixed_scaling(runs) if purpose == "scales" else []
        refusals = tuple(remark for remark in remarks if remark.refused)
        found.append(Likeness(purpose, refusals, tuple(remark for remark in remarks if not remark.refused)))
    return min(found, key=lambda one: (len(one.refusals), len(one.warnings)))


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
    """What tells each run from the others, in a few words; empty where nothing does that was chosen."""
    words: list[list[str]] = [[] for _ in runs]
    for aspect in _CHOSEN:
        values = [aspect_words(run, aspect) for run in runs]
        if len(set(values)) > 1:
            for at, value in enumerate(values):
                words[at].append(value)
    return tuple(" · ".join(filter(None, named)) for named in words)


def run_names(ids: Sequence[str]) -> str:
    """Of some runs: their ids, or how many they are."""
    return ", ".join(ids) if len(ids) <= _MOST_NAMED else plural(len(ids), "run")


def aspect_words(run: RunResult, aspect: Aspect) -> str:
    """What a run is in this respect."""
    return _ASPECTS[aspect][0](run)


def _mixed_scaling(runs: Sequence[RunResult]) -> list[Remark]:
    """Scales follow one rule for the batch: it grows with the GPUs, or it stays."""
    batches = {(run.configuration.scale, run.configuration.layout.gbs) for run in runs}
    weak = len({gbs / gpus for gpus, gbs in batches}) == 1
    strong = len({gbs for _, gbs in batches}) == 1
    if weak or strong:
        return []
    text = ", ".join(f"{gbs} on {plural(gpus, 'GPU')}" for gpus, gbs in sorted(batches))
    if len({gpus for gpus, _ in batches}) < len(batches):
        return [Remark("batch", f"One scale has several global batch sizes: {text}.", refused=True)]
    # Some published tables are so as well.
    words = f"The global batch neither grows with the GPUs nor stays: {text}. Compare tokens/s, not step times."
    return [Remark("batch", words, refused=False)]


def _model(run: RunResult) -> str:
    """Some releases name the size in the workload as well."""
    configuration = run.configuration
    return f"{configuration.workload.removesuffix(f'-{configuration.size}')} {configuration.size}"


def _layout(run: RunResult) -> str:
    layout = run.configuration.layout
    names = ("tp", "pp", "cp", "ep", "vp", "mbs")
    return " ".join(f"{name.upper()} {getattr(layout, name)}" for name in names if getattr(layout, name) is not None)


def _formula(run: RunResult) -> str:
    return run.plan.estimate.flops_formula if run.plan.estimate else "none"


def _did(*names: str) -> Callable[[RunResult], str]:
    """Which of these options a run had."""

    def did(run: RunResult) -> str:
        labels = [FIELDS[name].label for name in names if getattr(run.configuration.options, name)]
        return " and ".join(labels) or "none"

    return did


_ASPECTS: dict[Aspect, tuple[Callable[[RunResult], str], str, str]] = {
    "model": (_model, "They train other models", ""),
    "layers": (lambda run: plural(run.configuration.layout.layers, "layer"), "Their models have other depths", ""),
    "sequence length": (lambda run: f"{run.configuration.layout.seq_len}", "They have other sequence lengths", ""),
    "GPU type": (lambda run: run.configuration.gpu.upper(), "They ran on other GPU types", ""),
    "GPUs": (lambda run: plural(run.configuration.scale, "GPU"), "They ran on other numbers of GPUs", ""),
    "batch": (lambda run: f"{run.configuration.layout.gbs}", "They have other global batch sizes", ""),
    "precision": (lambda run: run.configuration.dtype, "They train with other precisions", ""),
    "variant": (
        lambda run: "" if run.configuration.dtype == "bf16" else VARIANT_WORDS[run.configuration.precision_variant],
        "Their precision is scaled in other ways",
        "The step time differs with it.",
    ),
    "layout": (_layout, "They have other layouts", ""),
    "options": (_did("profile", "nccl_trace", "load_checkpoint"), "They did other things that slow a run down", ""),
    "extras": (_did("save_checkpoint", "hub_tokenizer"), "They had other options of the recipe", ""),
    "release": (lambda run: run.configuration.release, "They are of other releases of the recipe", ""),
    "container": (lambda run: run.plan.container or "unknown", "They ran in other containers", ""),
    "formula": (
        _formula,
        "Their FLOPs are counted by other formulas",
        "Compare step times and tokens/s, not TFLOPS and MFU.",
    ),
    "procedure": (
        lambda run: PROCEDURES[run.procedure].title,
        "They were started by other procedures",
        "These do not always set the same.",
    ),
    "rule": (
        lambda run: run.rule_words,
        "Their recipes count other steps",
        "What is compared is the median of the steps that count for each.",
    ),
    "steps": (lambda run: plural(run.steps_total, "step"), "They have other numbers of steps", ""),
    "cluster": (lambda run: run.cluster, "They ran on other clusters", ""),
}
"""What is compared of runs: its value in words, empty where it has none; a sentence's begin and end."""
