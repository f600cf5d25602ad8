"""`Recipe`: one published benchmark release, as facts with their sources.

These dataclasses are also the schema of a preset file: `load.py` validates a file against them and refuses unknown
keys. Each table of a preset names the source of its values. A value that no source gives is absent, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from llmb_tui.catalog.settings import STRICT, SettingsGroup
from llmb_tui.catalog.upstream import CLOCK, UpstreamScripts
from llmb_tui.toml.bounds import Bound, Spelled

Scaling = Literal["weak", "strong"]
Variant = Literal["delayed", "current", "mx"]
VARIANT_WORDS: dict[Variant | None, str] = {
    "delayed": "delayed scaling",
    "current": "current scaling",
    "mx": "MX scaling",
    None: "scaling not named by any source",
}
LogFormatId = Literal["nemo2", "hydra"]
Positive = Annotated[float, Bound(gt=0)]
Count = Annotated[int, Bound(ge=1)]
# Names become parts of paths, job names and options: they contain no character that a shell or Slurm interprets.
Name = Annotated[str, Spelled(r"[a-z0-9][a-z0-9._-]*", "{!r} is not a name: use lower-case letters, digits and . _ -")]
RELEASE = r"\d{1,9}(\.\d{1,9})*"
Release = Annotated[str, Spelled(RELEASE, "{!r} is not a release: use numbers separated by dots")]
Clock = Annotated[str, Spelled(CLOCK, "{!r} is not a time HH:MM:SS above zero")]
Library = Literal["NeMo", "Megatron Core", "Transformer Engine", "PyTorch", "CUDA", "NCCL", "framework"]
"""Name of a library as a log prints it; `framework` is `FW_VERSION` in the `GSW:` line of the recipes to 25.02."""
Version = Annotated[str, Spelled(r"\d{1,9}\.\d{1,9}[\w.+-]*", "{!r} does not begin with two numbers, such as 2.2")]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU type in the recipe."""

    gpus_per_node: Count
    memory_gb: Positive
    """Capacity of one GPU, decimal GB."""
    peak_tflops: dict[str, Positive]
    """Dense peak in TFLOPS for the MFU formula, by precision; required for the precisions of the type's tables."""
    container: str
    """Image reference without registry, such as `nvidia/nemo:25.02.01`."""
    source: str


@dataclass(frozen=True, slots=True)
class ContainerVersions:
    """Library versions in one container image. A run whose log prints another major or minor version is not valid."""

    versions: dict[Library, Version]
    source: str


@dataclass(frozen=True, slots=True)
class PrecisionVariant:
    """Scaling of a precision that has several; step times differ between them."""

    variant: Variant
    source: str


@dataclass(frozen=True, slots=True)
class Flops:
    """The recipe's formula for the floating point operations of one sequence, forward and backward.

    seq_len * (attention + mlp + embedding), where
    attention = 12 * layers * hidden^2 * (1 + groups / heads + seq_len / hidden [/ 2 if causal]),
    mlp = (18 if gated else 12) * layers * ffn * hidden * experts per token, embedding = 6 * vocab * hidden.
    """

    name: str
    """Short name for the screen, such as `grouped queries, full attention`."""
    grouped_queries: bool
    """False: the formula counts as many key/value groups as heads."""
    causal: bool
    """True: the attention scores are counted half."""
    source: str


@dataclass(frozen=True, slots=True)
class Model:
    """Architecture of one size, with the numbers that the recipe's own FLOPs formula uses."""

    layers: Count
    hidden: Count
    ffn: Count
    heads: Count
    query_groups: Count
    vocab: Count
    seq_len: Count
    gated: bool
    """Gated MLP (three matrices) or plain (two)."""
    source: str
    flops_query_groups: Count | None = None
    """Key/value groups that the formula counts, if they differ from `query_groups`."""
    experts: Count = 1
    experts_per_token: Count = 1
    stage_extra_layers: Annotated[int, Bound(ge=0)] = 0
    """Layers that the embedding and the loss stand for when layers are divided over the pipeline."""
    checkpoint_gb: Positive | None = None
    """Size of one checkpoint, decimal GB."""
    save_min_gpus: dict[str, Count] = field(default_factory=dict)
    """Smallest tested scale for saving a checkpoint, by GPU type."""
    load_min_gpus: dict[str, Count] = field(default_factory=dict)
    """Smallest tested scale for loading a checkpoint, by GPU type."""
    gated_access: tuple[str, ...] = ()
    """Model hub repositories that NVIDIA's scripts need access to."""
    hub_tokenizer: str | None = None
    """Model hub repository of the model's tokenizer, if a run can use it instead of a tokenizer without download."""
    note: str | None = None

    @property
    def counted_query_groups(self) -> int:
        """Key/value groups in the FLOPs formula."""
        return self.flops_query_groups or self.query_groups

    @property
    def attention_parameters(self) -> float:
        """Attention parameters of one layer: queries, output, and keys and values of the groups."""
        return 2 * self.hidden**2 * (1 + self.query_groups / self.heads)

    @property
    def mlp_parameters(self) -> int:
        """MLP parameters of one layer, or of one expert of a layer."""
        return (3 if self.gated else 2) * self.hidden * self.ffn


@dataclass(frozen=True, slots=True)
class ConfigTable:
    """One table of configurations in the README's layout: named columns, one row per scale.

    Columns are `gpus` and those of `rows.PRINTED_COLUMNS` that the README has; a cell printed as NA is the string "NA".
    """

    size: str
    gpu: str
    dtypes: tuple[str, ...]
    scaling: Scaling
    columns: tuple[str, ...]
    rows: tuple[tuple[int | Literal["NA"], ...], ...]
    gbs_rule: str
    """Global batch size of an unlisted scale: a fraction of the GPU count such as `252/576`, or `const 512`."""
    source: str
    notes: dict[str, str] = field(default_factory=dict)
    """Notes on inconsistent rows, by GPU count (a string)."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A cell in which the recipe's script and its README differ."""

    size: str
    column: str
    value: Count
    reason: str
    source: str
    gpus: tuple[Count, ...] = ()
    """GPU counts of the affected rows; empty: all rows."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Published results, one list entry per scale, digits as printed."""

    size: str
    gpu: str
    dtype: str
    scaling: Scaling
    gpus: tuple[Count, ...]
    step_time_s: tuple[Positive, ...]
    tokens_per_s: tuple[Positive, ...]
    mfu_pct: tuple[Positive, ...]
    source: str
    precision_variant: Variant | None = None
    """Scaling of the precision, if it is not the recipe's."""
    days_per_1t_tokens: tuple[Positive | Literal["NA"], ...] = ()
    """Empty if the table has no such row."""
    release: Release | None = None
    """Release of the results, if it is not the recipe's; its configurations are the same."""
    container: str | None = None
    """Image of that other release, as `Gpu.container`."""
    notes: dict[str, str] = field(default_factory=dict)
    """Notes on misprints, by GPU count (a string)."""


@dataclass(frozen=True, slots=True)
class Example:
    """A step time from the README's text that is in no table, for comparison."""

    size: str
    gpu: str
    dtype: str
    scaling: Scaling
    gpus: Count
    step_time_s: Positive
    source: str


@dataclass(frozen=True, slots=True)
class Option:
    """A documented run option: its variable, default and allowed values."""

    name: str
    variable: str
    source: str
    default: str | int | bool | None = None
    """None: no fixed default; the option stays unset, or is required."""
    choices: tuple[str, ...] = ()
    effective: bool = True
    """False: documented, but the recipe's script does not read it."""
    steps: Count | None = None
    """Training steps of a run with the option, if the recipe fixes them."""
    time_limit: Clock | None = None
    """Time limit of a run with the option, if it differs."""
    ends_run: bool = False
    """True: the option's value is the number of steps of the run."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ResultRule:
    """Which steps of a run count as its result."""

    kind: Literal["last", "mean"]
    source: str
    first: Annotated[int, Bound(ge=0)] | None = None
    """For `mean`: first 0-based iteration of the window."""
    last: Annotated[int, Bound(ge=0)] | None = None
    """For `mean`: last iteration of the window, included."""


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """The command that starts the training in the container."""

    kind: LogFormatId
    """`nemo2`: our entry script builds NeMo's own recipe. `hydra`: the recipe's command with overrides."""
    source: str
    steps: Count = 50
    time_limit: Clock = "00:30:00"
    time_limit_strong: Clock | None = None
    factories: dict[str, str] = field(default_factory=dict)
    """nemo2: `module:function` that returns NeMo's recipe, by size."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """nemo2: arguments of that function."""
    command: tuple[str, ...] = ()
    """hydra: the command before the overrides."""

    @property
    def by_entry_script(self) -> bool:
        """True if our entry script builds NeMo's recipe; otherwise the recipe's command is started."""
        return not self.command


@dataclass(frozen=True, slots=True)
class Access:
    """Requirements for installing NVIDIA's scripts."""

    hub_token: bool
    source: str
    python: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """All published facts of one recipe release.

    Compared by identity, so that derived values can be cached.
    """

    __pydantic_config__ = STRICT
    workload: Name
    release: Release
    title: str
    source: str
    """Repository, tag and path of the README."""
    gpus: dict[Name, Gpu]
    dtypes: tuple[Name, ...]
    flops: Flops
    models: dict[Name, Model]
    tables: tuple[ConfigTable, ...]
    rule: ResultRule
    launch: LaunchFacts
    access: Access
    settings: tuple[SettingsGroup, ...] = ()
    """All settings of a launch, in groups with their sources."""
    upstream: UpstreamScripts | None = None
    """Facts of the recipe's scripts."""
    printed_flops: Flops | None = None
    """Formula of the README's MFU, if NVIDIA corrected it later; `flops` is the corrected one."""
    precision_variants: dict[str, PrecisionVariant] = field(default_factory=dict)
    """By precision; BF16 has none, because it has one scaling."""
    containers: dict[str, ContainerVersions] = field(default_factory=dict)
    """By image, as `Gpu.container`; a container whose versions no source states is absent."""
    results: tuple[ResultTable, ...] = ()
    examples: tuple[Example, ...] = ()
    corrections: tuple[Correction, ...] = ()
    options: tuple[Option, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """`workload@release`."""
        return f"{self.workload}@{self.release}"

    @property
    def always_vboost(self) -> bool:
        """True if NVIDIA's scripts shift power to the tensor cores before every run (vboost)."""
        return self.upstream is not None and "vboost" in self.upstream.launch.always

    def variant(self, dtype: str) -> Variant | None:
        """Scaling of a precision; None if it has only one, or if no source names it."""
        variant = self.precision_variants.get(dtype)
        return variant.variant if variant else None
