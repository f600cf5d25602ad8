"""Names of GPUs, as sites, Slurm's AutoDetect, Kubernetes and drivers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.catalog.gpu_model import gpu_model

NAMES = [
    # Names that drivers print.
    ("NVIDIA H100 80GB HBM3", "h100", None, None),
    ("NVIDIA H100 PCIe", "h100", "pcie", None),
    ("NVIDIA H100 NVL", "h100", "nvl", None),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "h100", None, "1g.10gb"),
    ("NVIDIA GB200", "gb200", None, None),
    ("NVIDIA GB300", "gb300", None, None),
    ("NVIDIA B200", "b200", None, None),
    ("NVIDIA B300 SXM6 AC", "b300", "sxm", None),
    ("NVIDIA GH200 480GB", "gh200", None, None),
    ("NVIDIA GH200 144G HBM3e", "gh200", None, None),
    ("NVIDIA H200", "h200", None, None),
    ("NVIDIA H200 NVL", "h200", "nvl", None),
    ("NVIDIA H20", "h20", None, None),
    ("NVIDIA H800", "h800", None, None),
    ("NVIDIA GB10", "gb10", None, None),
    ("Tesla V100-SXM2-32GB", "v100", "sxm", None),
    ("Tesla V100-PCIE-16GB", "v100", "pcie", None),
    ("NVIDIA A100-SXM4-80GB", "a100", "sxm", None),
    ("NVIDIA A100 80GB PCIe", "a100", "pcie", None),
    ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "a100", "sxm", "1c.3g.20gb"),
    ("NVIDIA L4", "l4", None, None),
    ("NVIDIA L40S", "l40s", None, None),
    ("NVIDIA RTX A6000", "a6000", None, None),
    ("NVIDIA GeForce RTX 4090", "rtx", None, None),
    ("AMD Instinct MI300X", "mi300x", None, None),
    # Labels of Kubernetes.
    ("NVIDIA-H100-80GB-HBM3", "h100", None, None),
    ("NVIDIA-H100-PCIe", "h100", "pcie", None),
    ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a100", "sxm", "1g.5gb"),
    # Slurm: names that sites choose, and AutoDetect's.
    ("h100", "h100", None, None),
    ("H100_SXM", "h100", "sxm", None),
    ("h100sxm5", "h100", "sxm", None),
    ("dgxh100", "h100", None, None),
    ("dgxgb200", "gb200", None, None),
    ("h100_pcie", "h100", "pcie", None),
    ("h100-pcie-80gb", "h100", "pcie", None),
    ("h100pcie", "h100", "pcie", None),
    ("nvidia_h100_nvl", "h100", "nvl", None),
    ("h100-nvl", "h100", "nvl", None),
    ("h100nvl94gb", "h100", "nvl", None),
    ("h100_nvlink", "h100", None, None),
    ("gb200_nvl72", "gb200", None, None),
    ("gb200_nvl", "gb200", None, None),
    ("nvl72", None, None, None),
    ("gh200_h100", "gh200", None, None),
    ("1g.10gb", None, None, "1g.10gb"),
    ("mig-1g.10gb", None, None, "1g.10gb"),
    ("h100_1g.10gb", "h100", None, "1g.10gb"),
    ("h100-1g.10gb", "h100", None, "1g.10gb"),
    ("h100.1g.10gb", "h100", None, "1g.10gb"),
    ("a100_3g.20gb", "a100", None, "3g.20gb"),
    ("a100_1g_5gb", "a100", None, "1g_5gb"),
    ("a100_1g5gb", "a100", None, "1g5gb"),
    ("a100_3g", "a100", None, "3g"),
    ("1g.10gb+me", None, None, "1g.10gb+me"),
    ("h100_mig", "h100", None, "mig"),
    ("a100mig", "a100", None, "mig"),
    ("nvidia_h100_80gb_hbm3_1g.10gb", "h100", None, "1g.10gb"),
    ("nvidia_h100_80gb_hbm3_4g.40gb", "h100", None, "4g.40gb"),
    ("nvidia_h100_pcie_7g.80gb", "h100", "pcie", "7g.80gb"),
    ("nvidia_rtx_pro_6000_blackwell", "rtx", None, None),
    ("a100_80g", "a100", None, None),
    ("p4_8gb", "p4", None, None),
    *((name, None, None, None) for name in ("hopper", "hgx", "nvidia", "80gb_hbm3", "tesla", "gpu", "")),
    ("sxm5", None, "sxm", None),
]


@pytest.mark.parametrize(("name", "gpu_type", "form", "profile"), NAMES)
def test_a_name_is_read_in_its_parts(name: str, gpu_type: str | None, form: str | None, profile: str | None) -> None:
    model = gpu_model(name)
    assert (model.type, model.form, model.slice_profile) == (gpu_type, form, profile)
    assert (model.is_slice, model.is_card) == (profile is not None, form in ("pcie", "nvl"))


@pytest.mark.parametrize(
    ("name", "wanted", "is_type"),
    [
        ("NVIDIA H100 80GB HBM3", "h100", True),
        ("nvidia_h100_nvl", "h100", True),
        ("h100", "H100", True),
        ("NVIDIA GH200 480GB", "h100", False),
        ("NVIDIA GH200 480GB", "h200", False),
        ("NVIDIA GH200 480GB", "gb200", False),
        ("gh200_h100", "h100", False),
        ("gb200", "b200", False),
        ("b200", "gb200", False),
        *((name, "h100", False) for name in ("h800", "h20", "h200", "b100", "a100", "1g.10gb", "h100_mig", "rtx_6000")),
        *((name, "h100", None) for name in ("hopper", "hgx", "sxm5", "80gb_hbm3", "nvl72")),
        # Types of presets that a site added.
        ("rtx4090", "rtx4090", True),
        ("acme_x1", "x1", True),
        ("acme_x10", "x1", None),
    ],
)
def test_is_type_is_true_false_or_unknown(name: str, wanted: str, is_type: bool | None) -> None:
    assert gpu_model(name).is_type(wanted) is is_type


TYPES = st.sampled_from(["h100", "h200", "h20", "h800", "b200", "b300", "gb200", "gb300", "gh200", "a100", "v100"])
MEMORY = st.sampled_from(["", "40gb", "64gb", "80gb", "80gb_hbm3", "94gb", "96g", "144g_hbm3e"])
FORMS = st.sampled_from(["", "sxm", "sxm5", "pcie", "nvl"])


@given(TYPES, MEMORY, FORMS, st.sampled_from("_- "), st.booleans(), st.booleans())
def test_the_name_of_a_whole_gpu_gives_exactly_one_type(  # noqa: PLR0917
    gpu_type: str, memory: str, form: str, separator: str, vendor: bool, capitals: bool
) -> None:
    words = [word for word in ("nvidia" if vendor else "", gpu_type, form, memory) if word]
    name = separator.join(words).replace("_", separator)
    model = gpu_model(name.upper() if capitals else name)
    assert (model.type, model.slice_profile) == (gpu_type, None)
    assert model.is_type(gpu_type) is True
    others = {"h100", "h200", "b200", "gb200"} - {gpu_type}
    assert not any(model.is_type(other) for other in others)


@given(TYPES, MEMORY, FORMS, st.integers(1, 7), st.integers(1, 192), st.sampled_from("_- "), st.booleans())
def test_a_slice_is_never_a_gpu_of_a_type(  # noqa: PLR0917
    gpu_type: str, memory: str, form: str, compute: int, gb: int, separator: str, named: bool
) -> None:
    profile = f"{compute}g.{gb}gb"
    words = [word for word in (gpu_type, form, memory, "mig" if named else "", profile) if word]
    model = gpu_model(separator.join(words))
    assert (model.type, model.slice_profile) == (gpu_type, profile)
    assert model.is_type(gpu_type) is False


@given(st.text())
def test_any_text_is_read(name: str) -> None:
    model = gpu_model(name)
    assert model.is_type("h100") in (True, False, None)
    assert not (model.is_slice and model.is_type("h100"))
