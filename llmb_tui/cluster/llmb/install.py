"""`LlmbInstall`: an installation of NVIDIA's llmb-install and llmb-run, from its `cluster_config.yaml`.

`find_installs` searches a few directories of a cluster for installations.

Sources: `llmb_install/config/cluster.py`, `llmb_run/config_manager.py` of NVIDIA/dgxc-benchmarking at v25.05 to v25.12
(version 1: a section `launcher`, no number) and v26.02 to v26.06.01 (version 2). The file contains tokens in clear
text: only the names of its environment variables are kept. Its Slurm section, in all forms, is read as options of
`sbatch`, as in llmb-run (v25.12: version 1; v26.06.01: both): a bare key is the variable `SBATCH_KEY`; `gres` is
`SBATCH_GPUS_PER_NODE`; null removes a common key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llmb_tui.cluster.llmb.files import ask, read_yaml, unreadable
from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.params import PROFILE_FIELDS
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.cluster.slurm.profile_check import check_profile
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.toml.read import adapter

CONFIG = "cluster_config.yaml"
_MOST = 4
_DEADLINE_S = 30.0
Options = tuple[tuple[str, str], ...]
"""Long option of `sbatch` and its value, which is empty for a flag."""

_MOVED_KEYS = ("llmb_repo", "llmb_install", "gpu_type", "cluster_name")
_GPUS = "gpus-per-node"
_V1 = {"gpu": ("gpu_partition", "gpu_gres"), "cpu": ("cpu_partition", "cpu_gres")}
# Input variables of sbatch whose names differ from those of the options.
_OPTION = {"timelimit": "time", "mem-per-node": "mem", "array-inx": "array", "req-switch": "switches", "gres": _GPUS}
_PREFIX = "sbatch-"
_BY_NUMBER = re.compile(r"(?:(?P<type>[^:,]+):)?(?P<count>\d+)")
# Fields of a profile by option. GPUs are not among them: they are the GPU request.
_FIELD = {"account": "account", "partition": "partition", "mem": "memory", **{name: name for name in PROFILE_FIELDS}}
_ANY = SlurmProfile(name="any", host="any", account="any", partition="any", install_dir="/any")


@dataclass(frozen=True, slots=True)
class LlmbWorkload:
    """One installed workload."""

    name: str
    """Name in llmb-run, such as `pretrain_nemotron4-340b`."""
    venv: str | None = None
    """Path of its Python environment; None if it has none."""
    environment: tuple[str, ...] = ()
    """Names of environment variables that only its runs get."""


@dataclass(frozen=True, slots=True)
class LlmbInstall:
    """One installation. Texts are clean of control characters; values of variables are not included."""

    path: str
    """Directory of the configuration."""
    version: int
    """Version of the configuration's form: 1 or 2."""
    root: str
    """Directory of images, environments, workloads and results: `$LLMB_INSTALL`."""
    repository: str
    gpu_type: str
    architecture: str | None
    """CPU architecture of the nodes, such as `x86_64`; None if the file does not name it."""
    cluster_name: str | None
    environment: tuple[str, ...]
    """Names of environment variables that every run gets."""
    gpu: Options
    """Slurm options of jobs with GPUs."""
    cpu: Options
    """Slurm options of jobs without GPUs."""
    workloads: tuple[LlmbWorkload, ...]
    release: str | None = None
    """Release of its recipes, such as `25.12`; None if its repository does not name it."""
    images: tuple[str, ...] = ()
    """File names of its container images."""
    venvs: tuple[str, ...] = ()
    """Names of its Python environments."""

    @property
    def name(self) -> str:
        """Name for screens."""
        return f"llmb-run {self.release} installation" if self.release else "llmb-run installation"


@dataclass(frozen=True, slots=True)
class LlmbInventory:
    """Installations of NVIDIA's own tools on a cluster."""

    installs: tuple[LlmbInstall, ...] = ()
    """Installations: that of the profile's directory first, then of `$LLMB_INSTALL`, then others."""
    errors: tuple[LlmbError, ...] = ()
    """One error for each configuration that cannot be used."""


def find_installs(session: Session, install_dir: str) -> LlmbInventory:
    """Search for installations in one remote call: in the profile's directory, `$LLMB_INSTALL` and usual places.

    `install_dir` is the profile's, and may be empty. Raises LlmbError if the search fails, and the errors of
    `Session.run_script`.
    """
    places = [install_dir.rstrip("/")] if matches(PATH, install_dir) else []
    answers = ask(session, remote_text("places.sh", "llmb_installs.sh"), _MOST, places, _DEADLINE_S)
    texts: dict[str, dict[str, str]] = {}
    for kind, path, text in answers:
        texts.setdefault(path, {})[kind] = text
    installs, errors = [], []
    for path, files in texts.items():
        try:
            if "config" not in files:
                raise unreadable(f"{path}/{CONFIG}", "You do not have the permission to read it.")
            installs.append(
                install_of(
                    path,
                    files["config"],
                    release=files.get("release", ""),
                    images=files.get("images", "").splitlines(),
                    venvs=files.get("venvs", "").splitlines(),
                )
            )
        except LlmbError as error:
            errors.append(error)
    return LlmbInventory(tuple(installs), tuple(errors))


def install_of(
    path: str, text: str, *, release: str = "", images: Iterable[str] = (), venvs: Iterable[str] = ()
) -> LlmbInstall:
    """Make an installation from the text of its configuration and its other files.

    Raises LlmbError for a file that is not such a configuration, or has a later version.
    """
    file = f"{path.rstrip('/')}/{CONFIG}"
    content = read_yaml(text, file)
    version = content.get("schema_version", 1 if "launcher" in content else None)
    if version not in (1, 2) or isinstance(version, bool):
        raise _unknown_version(file, version)
    config = _parse(file, _as_version_2(content) if version == 1 else content)
    try:
        gpu, cpu = _targets(config.slurm)
    except ValueError as error:
        raise unreadable(file, f"Its section `slurm` has another form than in llmb-run: {error}.") from None
    architecture = config.install.get("node_architecture")
    return LlmbInstall(
        path=clean_line(path),
        version=version,
        root=clean_line(config.llmb_install).rstrip("/") or "/",
        repository=clean_line(config.llmb_repo),
        gpu_type=clean_line(config.gpu_type).lower(),
        architecture=clean_line(architecture) if isinstance(architecture, str) else None,
        cluster_name=clean_line(config.cluster_name) if config.cluster_name else None,
        environment=_names(config.environment),
        gpu=gpu,
        cpu=cpu,
        workloads=_workloads(config.workloads),
        release=clean_line(release.strip().strip("\"'")) or None,
        images=tuple(map(clean_line, images)),
        venvs=tuple(map(clean_line, venvs)),
    )


def settings_of(install: LlmbInstall) -> dict[str, str]:
    """Values of an installation for a cluster profile, by field, without those that are invalid in a profile."""
    gpu, cpu = dict(install.gpu), dict(install.cpu)
    fields = {_FIELD[name]: value for name, value in gpu.items() if name in _FIELD}
    fields["install_dir"] = install.root
    fields["gpu_type"] = _gpu_request(install)[1]
    if cpu.get("partition") and cpu["partition"] != gpu.get("partition"):
        fields["cpu_partition"] = cpu["partition"]
    options = [
        f"{name}={value}" if value else name
        for name, value in gpu.items()
        if name not in _FIELD and name not in (_GPUS, "gres")
    ]
    # Each option has a semicolon: without one, blanks would separate the options.
    fields["slurm_params"] = "".join(f"{option};" for option in options if _is_valid("slurm_params", f"{option};"))
    return {name: value for name, value in fields.items() if value and _is_valid(name, value)}


def request_of(install: LlmbInstall) -> tuple[GpuRequest, str]:
    """Request for GPUs of llmb-run, and the number per node; empty if it requests none."""
    request, _, count = _gpu_request(install)
    return request, count


def _gpu_request(install: LlmbInstall) -> tuple[GpuRequest, str, str]:
    """Request for GPUs, their type and their number per node; type and number are empty if there are none."""
    options = dict(install.gpu)
    by_number = _BY_NUMBER.fullmatch(options.get(_GPUS, ""))
    if by_number is not None:
        return "gpus-per-node", by_number["type"] or "", by_number["count"]
    gres = options.get("gres", "")
    by_gres = _BY_NUMBER.fullmatch(gres.removeprefix("gpu:")) if gres.startswith("gpu:") else None
    return ("gres", by_gres["type"] or "", by_gres["count"]) if by_gres is not None else ("none", "", "")


@dataclass(frozen=True)
class _Workloads:
    """Section `workloads` of a configuration."""

    installed: list[str] | None = None
    config: dict[str, dict[str, Any] | None] | None = None


@dataclass(frozen=True)
class _Config:
    """Used keys of a configuration in the form of version 2."""

    llmb_repo: str
    llmb_install: str
    gpu_type: str
    slurm: dict[str, Any]
    cluster_name: str | None = None
    install: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] | None = None
    workloads: _Workloads = _Workloads()


def _as_version_2(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert version 1 to the form of version 2, without its Slurm section."""
    section = content.get("launcher")
    launcher = section if isinstance(section, dict) else {}
    install = content.get("install") or {}
    if isinstance(install, dict) and "node_architecture" in launcher:
        install = {"node_architecture": launcher["node_architecture"], **install}
    return {**content, **{key: launcher[key] for key in _MOVED_KEYS if key in launcher}, "install": install}


def _parse(file: str, content: Mapping[str, Any]) -> _Config:
    """Validate a configuration. Raises LlmbError, which names the invalid key."""
    from pydantic import ValidationError  # noqa: PLC0415 - takes 0.1 s, and the first frame does not need it

    keys = {key: value for key, value in content.items() if value is not None}
    try:
        config: _Config = adapter(_Config).validate_python(keys)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise unreadable(file, f"Its key `{key}` has another form than in llmb-run: {first['msg']}.") from None
    return config


def _targets(section: Mapping[str, Any]) -> tuple[Options, Options]:
    """Options of jobs with GPUs and of jobs without. Raises ValueError with the problem of the section."""
    if any(name in section for names in _V1.values() for name in names):
        if "gpu" in section or "cpu" in section:
            raise ValueError("it names partitions in both forms")
        blocks = {kind: _block_of_v1(section, *names) for kind, names in _V1.items()}
        reserved = {name for names in _V1.values() for name in names}
    else:
        blocks = {kind: _block(section, kind) for kind in _V1 if section.get(kind) is not None}
        reserved = set(_V1)
    if "gpu" not in blocks:
        raise ValueError("it has no part `gpu`")
    common = {key: value for key, value in section.items() if key not in reserved and value is not None}
    gpu = _merge(common, blocks["gpu"])
    return gpu, _merge(common, blocks["cpu"]) if "cpu" in blocks else gpu


def _block_of_v1(section: Mapping[str, Any], partition: str, gres: str) -> dict[Any, Any]:
    block = {"partition": section.get(partition), "gres": section.get(gres)}
    return {key: value for key, value in block.items() if value is not None}


def _block(section: Mapping[str, Any], kind: str) -> dict[Any, Any]:
    block = section[kind]
    if not isinstance(block, dict):
        raise ValueError(f"its part `{kind}` has no keys and values")
    return block


def _merge(common: Mapping[Any, Any], block: Mapping[Any, Any]) -> Options:
    merged: dict[str, str] = {}
    for key, value in (*common.items(), *block.items()):
        if isinstance(value, (dict, list)):
            raise ValueError(f"its key `{clean_line(str(key))}` has more than one value")
        name = _option(str(key))
        if value is None:
            merged.pop(name, None)
        elif not name.startswith("slurm-"):  # a variable of srun, not of sbatch
            merged[name] = clean_line(str(value)).strip()
    return tuple(merged.items())


def _option(key: str) -> str:
    name = key.strip().replace("_", "-").lower()
    bare = name.removeprefix(_PREFIX)
    # Only the bare key `gres` is the number of GPUs; the variable SBATCH_GRES is the option.
    return bare if name == f"{_PREFIX}gres" else _OPTION.get(bare, bare)


def _unknown_version(file: str, version: object) -> LlmbError:
    if version is None:
        return unreadable(file, "It has neither a section `launcher` nor a number `schema_version`.")
    number = version if isinstance(version, int) else "not a number"
    return unreadable(file, f"Its version is {number}; this llmb-tui knows versions 1 and 2. A newer one may know it.")


def _workloads(section: _Workloads) -> tuple[LlmbWorkload, ...]:
    """Installed workloads, in order and without duplicates."""
    config = section.config or {}
    workloads = {}
    for name in section.installed or ():
        settings = config.get(name) or {}
        venv, environment = settings.get("venv_path"), settings.get("environment")
        workloads[name] = LlmbWorkload(
            clean_line(name),
            clean_line(venv) if isinstance(venv, str) and venv else None,
            _names(environment if isinstance(environment, dict) else {}),
        )
    return tuple(workloads.values())


def _names(environment: Mapping[str, Any] | None) -> tuple[str, ...]:
    return tuple(clean_line(str(name)) for name in environment or {})


def _is_valid(name: str, value: str) -> bool:
    if name == "segment":
        return value.isdecimal() and int(value) > 0
    changed: dict[str, Any] = {name: value}
    try:
        check_profile(replace(_ANY, **changed))
    except InvalidFieldError:
        return False
    return True
