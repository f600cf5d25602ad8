"""`LlmbInstall`: an installation of NVIDIA's llmb-install and llmb-run, as its `cluster_config.yaml` has it.

`find_installs` looks for them on a cluster: few places are looked at, none deeply.

Facts: `llmb_install/config/cluster.py` and `llmb_run/config_manager.py` of NVIDIA/dgxc-benchmarking at v25.05 to v25.12
(version 1: a section `launcher`, no number) and v26.02 to v26.06.01 (version 2). The file holds tokens in clear text:
of its environment only the names are kept. Its Slurm section, in all its forms, is read as options of `sbatch`, as
llmb-run does it (v25.12: version 1; v26.06.01: both): a bare key stands for the variable `SBATCH_KEY`; `gres` is
`SBATCH_GPUS_PER_NODE`; null takes a common key away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llmb_tui.cluster.llmb.files import ask, read_yaml, unreadable
from llmb_tui.cluster.profile_check import WrongField
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.params import PROFILE_FIELDS
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.cluster.slurm.profile_check import check_profile
from llmb_tui.cluster.validation import PATH, matches
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line
from llmb_tui.toml.read import adapter

CONFIG = "cluster_config.yaml"
_MOST = 4
_DEADLINE_S = 30.0
Options = tuple[tuple[str, str], ...]
"""Long option of `sbatch` and its value; an empty one for a flag."""

_MOVED_KEYS = ("llmb_repo", "llmb_install", "gpu_type", "cluster_name")
_GPUS = "gpus-per-node"
_V1 = {"gpu": ("gpu_partition", "gpu_gres"), "cpu": ("cpu_partition", "cpu_gres")}
# sbatch's own input variables, where their names are not those of the options.
_OPTION = {"timelimit": "time", "mem-per-node": "mem", "array-inx": "array", "req-switch": "switches", "gres": _GPUS}
_PREFIX = "sbatch-"
# Fields of a profile by option; the GPUs are neither a field nor a further parameter: they are the GPU request.
_FIELD = {"account": "account", "partition": "partition", "mem": "memory", **{name: name for name in PROFILE_FIELDS}}
_ANY = SlurmProfile(name="any", host="any", account="any", partition="any", install_dir="/any")


@dataclass(frozen=True, slots=True)
class LlmbWorkload:
    """One installed workload."""

    name: str
    """As llmb-run names it, such as `pretrain_nemotron4-340b`."""
    venv: str | None = None
    """Path of its Python environment; None where it has none."""
    environment: tuple[str, ...] = ()
    """Names of the variables that only its runs get."""


@dataclass(frozen=True, slots=True)
class LlmbInstall:
    """One installation. Texts are clean of control characters; no value of a variable is in it."""

    path: str
    """Directory of the configuration."""
    version: int
    """Of the configuration's form: 1 or 2."""
    root: str
    """Where images, environments, workloads and results are: `$LLMB_INSTALL`."""
    repository: str
    gpu_type: str
    architecture: str | None
    """Of the nodes, such as `x86_64`; None where it is not said."""
    cluster_name: str | None
    environment: tuple[str, ...]
    """Names of the variables that every run gets."""
    gpu: Options
    """What jobs with GPUs ask Slurm for."""
    cpu: Options
    """What jobs without GPUs ask for."""
    workloads: tuple[LlmbWorkload, ...]
    release: str | None = None
    """Of its recipes, such as `25.12`; None where its repository does not say."""
    images: tuple[str, ...] = ()
    """File names of the container images that are there."""
    venvs: tuple[str, ...] = ()
    """Names of the Python environments that are there."""

    @property
    def name(self) -> str:
        """What it is called on a screen."""
        return f"llmb-run {self.release} installation" if self.release else "llmb-run installation"


@dataclass(frozen=True, slots=True)
class LlmbInventory:
    """What a cluster has of NVIDIA's own tools."""

    installs: tuple[LlmbInstall, ...] = ()
    """Of the profile's own directory first, then of `$LLMB_INSTALL`, then others."""
    troubles: tuple[Trouble, ...] = ()
    """One for each configuration that cannot be used."""


def find_installs(session: Session, install_dir: str) -> LlmbInventory:
    """Look for installations, in one remote call: there, where the login shell says, where sites keep such things.

    `install_dir` is the profile's and may be empty. Raises Trouble where it cannot be looked, and what
    `Session.run_script` raises.
    """
    places = [install_dir.rstrip("/")] if matches(PATH, install_dir) else []
    answers = ask(session, remote_text("places.sh", "llmb_installs.sh"), _MOST, places, _DEADLINE_S)
    texts: dict[str, dict[str, str]] = {}
    for kind, path, text in answers:
        texts.setdefault(path, {})[kind] = text
    installs, troubles = [], []
    for path, files in texts.items():
        try:
            if "config" not in files:
                raise unreadable(f"{path}/{CONFIG}", "You may not read it.")
            installs.append(
                install_of(
                    path,
                    files["config"],
                    release=files.get("release", ""),
                    images=files.get("images", "").splitlines(),
                    venvs=files.get("venvs", "").splitlines(),
                )
            )
        except Trouble as trouble:
            troubles.append(trouble)
    return LlmbInventory(tuple(installs), tuple(troubles))


def install_of(
    path: str, text: str, *, release: str = "", images: Iterable[str] = (), venvs: Iterable[str] = ()
) -> LlmbInstall:
    """The installation in a directory, from the text of its configuration and what was found beside it.

    Raises Trouble for a file that is no such configuration, or one of a later version.
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
        raise unreadable(file, f"Its section `slurm` is not llmb-run's: {error}.") from None
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
    """What the installation says for a cluster profile, by field. What a profile cannot have is left out."""
    gpu, cpu = dict(install.gpu), dict(install.cpu)
    fields = {_FIELD[name]: value for name, value in gpu.items() if name in _FIELD}
    fields["install_dir"] = install.root
    if cpu.get("partition") and cpu["partition"] != gpu.get("partition"):
        fields["cpu_partition"] = cpu["partition"]
    further = [
        f"{name}={value}" if value else name for name, value in gpu.items() if name not in _FIELD and name != _GPUS
    ]
    # Each with its semicolon: where there is none, blanks separate.
    fields["slurm_params"] = "".join(f"{option};" for option in further if _may_be("slurm_params", f"{option};"))
    return {name: value for name, value in fields.items() if value and _may_be(name, value)}


def request_of(install: LlmbInstall) -> tuple[GpuRequest, str]:
    """How llmb-run asks for GPUs, and for how many on a node; empty where it does not."""
    count = dict(install.gpu).get(_GPUS, "")
    return ("gpus-per-node", count) if count else ("none", "")


@dataclass(frozen=True)
class _Workloads:
    """Section `workloads`."""

    installed: list[str] | None = None
    config: dict[str, dict[str, Any] | None] | None = None


@dataclass(frozen=True)
class _Config:
    """What is read of a configuration in the form of version 2."""

    llmb_repo: str
    llmb_install: str
    gpu_type: str
    slurm: dict[str, Any]
    cluster_name: str | None = None
    install: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] | None = None
    workloads: _Workloads = _Workloads()


def _as_version_2(content: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 in the form of version 2; its Slurm section keeps its own."""
    section = content.get("launcher")
    launcher = section if isinstance(section, dict) else {}
    install = content.get("install") or {}
    if isinstance(install, dict) and "node_architecture" in launcher:
        install = {"node_architecture": launcher["node_architecture"], **install}
    return {**content, **{key: launcher[key] for key in _MOVED_KEYS if key in launcher}, "install": install}


def _parse(file: str, content: Mapping[str, Any]) -> _Config:
    """The configuration in the types that it should have. Raises Trouble, which names the key that has not."""
    from pydantic import ValidationError  # noqa: PLC0415 - costs 0.1 s, and the first frame needs none

    keys = {key: value for key, value in content.items() if value is not None}
    try:
        config: _Config = adapter(_Config).validate_python(keys)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise unreadable(file, f"Its key `{key}` is not what llmb-run has there: {first['msg']}.") from None
    return config


def _targets(section: Mapping[str, Any]) -> tuple[Options, Options]:
    """What jobs with GPUs and jobs without ask for. Raises ValueError, which says what is wrong with the section."""
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
        raise ValueError(f"its part `{kind}` holds no keys and values")
    return block


def _merge(common: Mapping[Any, Any], block: Mapping[Any, Any]) -> Options:
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


def _unknown_version(file: str, version: object) -> Trouble:
    if version is None:
        return unreadable(file, "It has neither a section `launcher` nor a number `schema_version`.")
    number = version if isinstance(version, int) else "something else than a number"
    return unreadable(file, f"Its form is {number}; known are 1 and 2. A newer llmb-tui may know it.")


def _workloads(section: _Workloads) -> tuple[LlmbWorkload, ...]:
    """The installed ones, in order: a file may name one twice."""
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


def _may_be(name: str, value: str) -> bool:
    if name == "segment":
        return value.isdecimal() and int(value) > 0
    changed: dict[str, Any] = {name: value}
    try:
        check_profile(replace(_ANY, **changed))
    except WrongField:
        return False
    return True
