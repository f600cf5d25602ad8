"""The Slurm section of `cluster_config.yaml`, in all its forms, as options of `sbatch`. Pure.

Facts: llmb-run's own reading of it, `config_manager.py` of v25.12 (version 1) and v26.06.01 (both versions). A bare
key stands for the variable `SBATCH_KEY`; `gres` is `SBATCH_GPUS_PER_NODE`; null takes a common key away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llmb_tui.text import clean_line

Options = tuple[tuple[str, str], ...]
"""Long option of `sbatch` and its value; an empty one for a flag."""

_GPUS = "gpus-per-node"
_V1 = {"gpu": ("gpu_partition", "gpu_gres"), "cpu": ("cpu_partition", "cpu_gres")}
# sbatch's own input variables, where their names are not those of the options.
_OPTION = {"timelimit": "time", "mem-per-node": "mem", "array-inx": "array", "req-switch": "switches", "gres": _GPUS}
_PREFIX = "sbatch-"


def targets(section: Mapping[str, Any]) -> tuple[Options, Options]:
    """What jobs with GPUs and jobs without ask for. Raises ValueError, which says what is wrong with the section."""
    if any(name in section for names in _V1.values() for name in names):
        if "gpu" in section or "cpu" in section:
            raise ValueError("it names partitions in both forms")
        blocks = {kind: _block_of_v1(section, *names) for kind, names in _V1.items()}
        taken: Iterable[str] = (name for names in _V1.values() for name in names)
    else:
        blocks = {kind: _block(section, kind) for kind in _V1 if section.get(kind) is not None}
        taken = _V1
    if "gpu" not in blocks:
        raise ValueError("it has no part `gpu`")
    own = set(taken)
    common = {key: value for key, value in section.items() if key not in own and value is not None}
    gpu = _merged(common, blocks["gpu"])
    return gpu, _merged(common, blocks["cpu"]) if "cpu" in blocks else gpu


def _block_of_v1(section: Mapping[str, Any], partition: str, gres: str) -> dict[Any, Any]:
    given = {"partition": section.get(partition), "gres": section.get(gres)}
    return {key: value for key, value in given.items() if value is not None}


def _block(section: Mapping[str, Any], kind: str) -> dict[Any, Any]:
    block = section[kind]
    if not isinstance(block, dict):
        raise ValueError(f"its part `{kind}` holds no keys and values")
    return block


def _merged(common: Mapping[Any, Any], block: Mapping[Any, Any]) -> Options:
    merged: dict[str, str] = {}
    for key, value in (*common.items(), *block.items()):
        if isinstance(value, (dict, list)):
            raise ValueError(f"its key `{clean_line(str(key))}` holds more than one value")
        name = _option(str(key))
        if value is None:
            merged.pop(name, None)
        elif not name.startswith("slurm-"):  # a variable of srun, not of sbatch
            merged[name] = clean_line(str(value)).strip()
    return tuple(merged.items())


def _option(key: str) -> str:
    name = key.strip().replace("_", "-").lower()
    bare = name.removeprefix(_PREFIX)
    # Only the bare key means GPUs; the variable SBATCH_GRES is the option.
    return bare if name == f"{_PREFIX}gres" else _OPTION.get(bare, bare)
