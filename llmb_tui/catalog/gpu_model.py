"""`GpuModel`: the meaning of a GPU's name, as schedulers and drivers print it. The one owner of that question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Form = Literal["sxm", "pcie", "nvl"]
"""Board of a GPU: SXM module, PCIe card, or PCIe card with an NVLink bridge (`H100 NVL`)."""

# Models such as `h100`, `gb200` and `a6000`, also inside a word such as `dgxh100`. Short names count only as whole
# words: the digits of `hbm3`, `sxm5` and `nvl72` name no model.
_MODEL = re.compile(
    r"(?:g?[bh]|[apv])\d{1,2}00(?!\d)|mi\d{2,3}[axp]?(?![a-z0-9])"
    r"|(?<![a-z0-9])(?:k80|m40|m60|p4|p40|t4|l4|l20|l40s?|a2|a10g?|a16|a30|a40|h20|gb10)(?![a-z0-9])"
)
_FAMILY = re.compile(r"(?<![a-z0-9])(?:[rg]tx|titan|quadro|gaudi)")
# `1g.10gb`, `1c.3g.20gb`, `1g.10gb+me`, `1g_10gb` or `3g`, also behind a model; sizes such as `80gb` are no slices.
_PROFILE = re.compile(
    r"(?<!\d)(?:\dc[._-])?[1-7]g(?:[._-]?\d+(?:gb?)?)?(?:[+.]me(?:\.all)?|\+gfx)?(?![a-z])"
    r"|(?<![a-z])mig(?![a-z])"
)
_FORMS: tuple[tuple[Form, re.Pattern[str]], ...] = (
    ("pcie", re.compile(r"pcie?(?![a-z])")),
    # `nvlink` is a link and `nvl72` a rack; `nvl94gb` is a card and its memory.
    ("nvl", re.compile(r"nvl(?!ink|\d+(?!\d|gb))")),
    ("sxm", re.compile(r"sxm")),
)


@dataclass(frozen=True, slots=True)
class GpuModel:
    """The parts of a GPU's name."""

    name: str
    """The whole name in small letters."""
    type: str | None
    """Model such as `h100`, `gb200` or `a100`, or a family such as `rtx`; None if the name contains none."""
    form: Form | None
    """None if the name does not say, as in `h100`, `NVIDIA H100 80GB HBM3` and `NVIDIA B200`."""
    slice_profile: str | None
    """MIG profile such as `1g.10gb`, or `mig` if the name says no more; None for a whole GPU."""

    @property
    def is_slice(self) -> bool:
        """True for a part of a GPU (MIG)."""
        return self.slice_profile is not None

    @property
    def is_card(self) -> bool:
        """True for a PCIe or NVL card. It is slower than the SXM module of the same type."""
        return self.form in ("pcie", "nvl")

    def is_type(self, gpu_type: str) -> bool | None:
        """True if the name is that of a whole GPU of a type, such as `h100`; None if that is unknown.

        `gb200` and `gh200` are neither `b200` nor `h200`. A slice is of no type. Names without a model, such as
        `hopper` or `sxm5`, say nothing.
        """
        if self.is_slice:
            return False
        wanted = gpu_type.lower()
        if self.type is not None and not self.type.isalpha():
            return self.type == wanted
        if wanted in re.split(r"[^a-z0-9]+", self.name):
            return True
        return None if self.type is None else False


def gpu_model(name: str) -> GpuModel:
    """Read a GPU's name: a site's (`h100`, `dgxh100`), AutoDetect's (`nvidia_h100_80gb_hbm3_1g.10gb`) or a driver's.

    If a name contains two models, such as `gh200_h100`, the first one counts.
    """
    text = name.lower()
    profile = _longest(_PROFILE, text)
    model = _MODEL.search(text) or _FAMILY.search(text)
    gpu_type = model[0] if model else None
    form = next((form for form, pattern in _FORMS if pattern.search(text)), None)
    if form == "nvl" and gpu_type is not None and gpu_type.startswith("gb"):
        form = None  # each GB200 is part of an NVL rack
    return GpuModel(text, gpu_type, form, profile)


def _longest(pattern: re.Pattern[str], text: str) -> str | None:
    """The profile, if the name contains both a profile and `mig`."""
    return max((match[0] for match in pattern.finditer(text)), key=len, default=None)
