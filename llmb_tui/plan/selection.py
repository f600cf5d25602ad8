"""`Selection`: what a person has chosen to run, and `FIELDS`, the table of all that can be chosen.

A new option is an attribute of `RunOptions` and a row of `OPTIONS`: its flag, its key in JSON, its place in the wizard
and in the review follow from that.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

OptionKind = Literal["name", "number", "switch", "text", "path"]
"""A name is one of those that presets know; a path is one of the cluster."""
Value = str | int | bool | None

ON = "on"
"""A switch that is on, as a form writes it; one that is off is empty."""
LONGEST_PATH = 4096
"""Characters, as Linux has it."""


@dataclass(frozen=True, slots=True)
class Field:
    """What can be set, and what it is called."""

    name: str
    """Attribute of the class that holds it, and key in JSON; the long flag is made of it."""
    kind: OptionKind
    label: str = ""
    """On the screen, where the wizard makes a form of it; an option is called so in presets too."""
    help: str = ""
    """Of the flag."""
    short: str = ""
    """The flag of one letter."""
    metavar: str = ""
    word: str = ""
    """The label of an option where there is room for one word."""
    prompt: str = ""
    """What stands before the text where an option is typed."""
    of: str = ""
    """The switch without which it means nothing."""
    least: int = 0
    """The smallest number that a run can have."""
    has_flag: bool = True

    @property
    def flag(self) -> str:
        """The long flag."""
        return f"--{self.name.replace('_', '-')}"

    def value(self, text: str) -> Value:
        """What was typed or switched in a form; None or False where that is nothing."""
        if self.kind == "switch":
            return text == ON
        if self.kind == "number":
            return int(text) if text.isdecimal() else None
        return text or None

    def words(self, value: Value) -> list[str]:
        """The value as words of a command line; none where it is not set."""
        if not is_given(value):
            return []
        return [self.flag] if value is True else [self.short or self.flag, str(value)]


def is_given(value: object) -> bool:
    """False for a value that leaves its field as it is: None, and a switch that is off. 0 is a value."""
    return value is not None and value is not False


def text_of(value: Value) -> str:
    """A value as a form shows it."""
    if isinstance(value, bool):
        return ON if value else ""
    return "" if value is None else str(value)


ProcedureId = Literal["direct", "upstream", "llmb", "runai"]
"""How a run is started: by our script in the container, by NVIDIA's own scripts, by NVIDIA's llmb-run, or by our
script as a workload of Run:ai."""
DEFAULT_PROCEDURE: ProcedureId = "direct"
OLD_PROCEDURES: dict[str, ProcedureId] = {"recipe": "upstream", "llmb-run": "llmb"}
"""What older versions called them, in stored runs and on the command line."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Parallelism fields set by hand; None leaves the recipe's value. `vp=1` and `ep=1` mean none."""

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
        """The fields that are set."""
        return {name: v for name in _OVERRIDES if (v := getattr(self, name)) is not None}


_OVERRIDES = tuple(field.name for field in fields(Overrides))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run does beside the benchmark itself, or otherwise than the benchmark."""

    hub_tokenizer: bool = False
    """Take the model's own tokenizer from the model hub instead of one that needs no download."""
    profile: bool = False
    """Make an Nsight Systems profile of some steps."""
    profile_start: int | None = None
    """First profiled step; None is the recipe's default."""
    profile_stop: int | None = None
    """The step that ends the profile and the run; None is the recipe's default."""
    nccl_trace: bool = False
    """Let NCCL log what it does, over a few steps."""
    save_checkpoint: bool = False
    load_checkpoint: str | None = None
    """Directory of a checkpoint on the cluster, the parent of `weights`. The run then takes one step."""
    no_network_file: bool = False
    """Keep no file of NCCL's lines about the network, by which a run of our script shows that it used no sockets."""


NOTHING_MORE = RunOptions()
"""The benchmark itself."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One configuration, named as `llmb-run` names it. GPU type and precision are lower case."""

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
    """Training steps; None is the recipe's default."""
    time_limit: str | None = None
    """Slurm time limit `HH:MM:SS`; None is the recipe's default."""
    options: RunOptions = NOTHING_MORE

    @property
    def recipe_id(self) -> str:
        """`<workload>@<release>`."""
        return f"{self.workload}@{self.release}"

    def value(self, name: str) -> Value:
        """The value of a field, whichever part of the selection holds it."""
        holder = next((part for part in (self.overrides, self.options) if hasattr(part, name)), self)
        value: Value = getattr(holder, name)
        return value


_DEFAULT = "(the recipe's default otherwise)"

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
    Field("nccl_trace", "switch", "NCCL trace", "let NCCL log its calls, over a few steps", word="trace"),
    Field("save_checkpoint", "switch", "save checkpoint", "save a checkpoint after the last step", word="save"),
    Field(
        "load_checkpoint",
        "path",
        "load checkpoint",
        "load a checkpoint of the cluster, then take one step",
        metavar="PATH",
        word="load",
        prompt="load from",
    ),
    Field("hub_tokenizer", "switch", "hub tokenizer", "take the tokenizer from the model hub", word="tokenizer"),
    Field("no_network_file", "switch", "no network file", "keep no NCCL lines about the network", word="no network"),
)
"""The attributes of `RunOptions`, in the order in which they are offered."""

_TABLE = (
    Field("workload", "name", "", "workload, of the newest release that lists the rest", "-w", "W[@RELEASE]"),
    # Its flag is the workload's.
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
"""Everything that can be set, by name: the attributes of `Selection`, and of its `overrides` and `options`."""

VARIANTS = (
    Field("precision_variant", "name", help="how the precision is scaled: the recipe's own alone", metavar="NAME"),
    Field("variant", "name", help="variant of the configuration: the recipe's own alone", metavar="NAME"),
)
"""What a plan says of its selection and no selection holds: of each configuration a recipe has one variant."""
