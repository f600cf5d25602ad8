"""`Selection`: the user's choice of a run, and `FIELDS`, the table of its fields.

A new option is an attribute of `RunOptions` and a row of `OPTIONS`: its flag, its JSON key and its place in the wizard
and the review follow from that.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

OptionKind = Literal["name", "number", "switch", "text", "path"]
"""`name`: a name from the presets; `path`: a path on the cluster."""
Value = str | int | bool | None

ON = "on"
"""Text of a form for a switch that is on; an empty text means off."""
LONGEST_PATH = 4096
"""Longest path on Linux, characters."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a selection: its names and its help."""

    name: str
    """Attribute and JSON key; the long flag is derived from it."""
    kind: OptionKind
    label: str = ""
    """Label in forms of the wizard; also the name of an option in presets."""
    help: str = ""
    """Help text of the flag."""
    short: str = ""
    """Flag of one letter."""
    metavar: str = ""
    word: str = ""
    """One-word label of an option."""
    prompt: str = ""
    """Prompt of a text field."""
    of: str = ""
    """The switch that enables the field; empty if none does."""
    least: int = 0
    """Smallest valid number."""
    has_flag: bool = True

    @property
    def flag(self) -> str:
        """The long flag."""
        return f"--{self.name.replace('_', '-')}"

    def value(self, text: str) -> Value:
        """The value of a form's text; None or False if it is empty."""
        if self.kind == "switch":
            return text == ON
        if self.kind == "number":
            return int(text) if text.isdecimal() else None
        return text or None

    def words(self, value: Value) -> list[str]:
        """The value as command-line words; empty if it is not set."""
        if not is_given(value):
            return []
        return [self.flag] if value is True else [self.short or self.flag, str(value)]


def is_given(value: object) -> bool:
    """False for None and for a switch that is off; True for any other value, including 0."""
    return value is not None and value is not False


def text_of(value: Value) -> str:
    """The text of a value in a form."""
    if isinstance(value, bool):
        return ON if value else ""
    return "" if value is None else str(value)


ProcedureId = Literal["direct", "upstream", "llmb", "runai"]
"""Launch method: our script in the container, NVIDIA's scripts, NVIDIA's llmb-run, or our script as a Run:ai
workload."""
DEFAULT_PROCEDURE: ProcedureId = "direct"
OLD_PROCEDURES: dict[str, ProcedureId] = {"recipe": "upstream", "llmb-run": "llmb"}
"""Names in older versions, in stored runs and on the command line."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Manual overrides of the layout; None keeps the recipe's value. `vp=1` and `ep=1` mean none."""

    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    vp: int | None = None
    mbs: int | None = None
    gbs: int | None = None
    seq_len: int | None = None
    layers: int | None = None

    def set_fields(self) -> dict[str, int]:
        """The overrides that are set, by name."""
        return {name: v for name in _OVERRIDES if (v := getattr(self, name)) is not None}


_OVERRIDES = tuple(field.name for field in fields(Overrides))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Additions to the benchmark, and deviations from it."""

    hub_tokenizer: bool = False
    """Use the model's tokenizer from the model hub instead of one without download."""
    profile: bool = False
    """Profile some steps with Nsight Systems."""
    profile_start: int | None = None
    """First profiled step; None: the recipe's default."""
    profile_stop: int | None = None
    """Step that ends the profile and the run; None: the recipe's default."""
    nccl_trace: bool = False
    """Log NCCL's calls over a few steps."""
    save_checkpoint: bool = False
    load_checkpoint: str | None = None
    """Directory of a checkpoint on the cluster, the parent of `weights`; the run takes one step."""
    no_network_file: bool = False
    """Keep no file of NCCL's network lines, which prove for a run of our script that it used no sockets."""


NOTHING_MORE = RunOptions()
"""The benchmark without options."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One configuration in the terms of `llmb-run`. GPU type and precision are lower case."""

    workload: str
    release: str
    size: str
    gpu: str
    dtype: str
    scale: int
    """Number of GPUs."""
    strong_scaling: bool = False
    overrides: Overrides = Overrides()
    steps: int | None = None
    """Training steps; None: the recipe's default."""
    time_limit: str | None = None
    """Slurm time limit in any form that sbatch accepts, such as `HH:MM:SS`; None: the recipe's default."""
    options: RunOptions = NOTHING_MORE

    @property
    def recipe_id(self) -> str:
        """`<workload>@<release>`."""
        return f"{self.workload}@{self.release}"

    def value(self, name: str) -> Value:
        """The value of a field of the selection, its overrides or its options."""
        holder = next((part for part in (self.overrides, self.options) if hasattr(part, name)), self)
        value: Value = getattr(holder, name)
        return value


_DEFAULT = "(default: the recipe's)"

_LAYOUT = (
    ("tp", "TP", "tensor parallel size"),
    ("pp", "PP", "pipeline parallel size"),
    ("cp", "CP", "context parallel size"),
    ("ep", "EP", "expert parallel size (1: none)"),
    ("vp", "VP", "virtual pipeline stages (1: none)"),
    ("mbs", "MBS", "micro batch size"),
    ("gbs", "GBS", "global batch size"),
    ("seq_len", "seq", "sequence length in tokens"),
    ("layers", "layers", "layers of the model"),
)
LAYOUT = tuple(Field(name, "number", label, text, metavar="N", least=1) for name, label, text in _LAYOUT)
"""The attributes of `Overrides`."""

OPTIONS = (
    Field("profile", "switch", "Nsight profile", "profile some steps with Nsight Systems", short="-p", word="profile"),
    Field(
        "profile_start",
        "number",
        "profile from step",
        f"first profiled step {_DEFAULT}",
        metavar="STEP",
        prompt="profile from",
        of="profile",
    ),
    Field(
        "profile_stop",
        "number",
        "profile to step",
        f"last profiled step {_DEFAULT}",
        metavar="STEP",
        prompt="to step",
        of="profile",
    ),
    Field("nccl_trace", "switch", "NCCL trace", "log NCCL's calls over a few steps", word="trace"),
    Field("save_checkpoint", "switch", "save checkpoint", "save a checkpoint after the last step", word="save"),
    Field(
        "load_checkpoint",
        "path",
        "load checkpoint",
        "load a checkpoint on the cluster, then run one step",
        metavar="PATH",
        word="load",
        prompt="load from",
    ),
    Field("hub_tokenizer", "switch", "hub tokenizer", "use the tokenizer from the model hub", word="tokenizer"),
    Field("no_network_file", "switch", "no network file", "keep no NCCL lines about the network", word="no network"),
)
"""The attributes of `RunOptions`, in display order."""

_TABLE = (
    Field("workload", "name", "", "workload; the newest release that lists the configuration", "-w", "W[@RELEASE]"),
    # `--workload W@RELEASE` sets it.
    Field("release", "name", has_flag=False),
    Field("size", "name", help="model size, such as 15b", short="-s"),
    Field("gpu", "name", help="GPU type, such as h100", metavar="TYPE"),
    Field("dtype", "name", help="precision: bf16 or fp8", short="-d"),
    Field("scale", "number", help="number of GPUs", metavar="GPUS", least=1),
    Field("strong_scaling", "switch", help="keep the global batch size constant"),
    *LAYOUT,
    Field("steps", "number", "steps", f"training steps {_DEFAULT}", metavar="N", least=1),
    Field("time_limit", "text", "time limit", f"Slurm time limit {_DEFAULT}", metavar="HH:MM:SS"),
    *OPTIONS,
)
FIELDS = {field.name: field for field in _TABLE}
"""All fields by name: the attributes of `Selection`, its `overrides` and its `options`."""

VARIANTS = (
    Field("precision_variant", "name", help="scaling of the precision; only the recipe's", metavar="NAME"),
    Field("variant", "name", help="variant of the configuration; only the recipe's", metavar="NAME"),
)
"""Fields of a plan's document that a selection does not store: each configuration of a recipe has one variant."""
