"""`LlmbInstall`: an installation of NVIDIA's llmb-install and llmb-run, as its `cluster_config.yaml` has it. Pure.

Facts: `llmb_install/config/cluster.py` and `llmb_run/config_manager.py` of NVIDIA/dgxc-benchmarking at v25.05 to v25.12
(version 1: a section `launcher`, no number) and v26.02 to v26.06.01 (version 2). The file holds tokens in clear text:
of its environment only the names are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from llmb_tui.cluster.llmb.files import read_yaml, unreadable
from llmb_tui.cluster.llmb.slurm import Options, targets
from llmb_tui.errors import Trouble
from llmb_tui.text import clean_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter

CONFIG = "cluster_config.yaml"
_LEVELLED = ("llmb_repo", "llmb_install", "gpu_type", "cluster_name")


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
    config = _checked(file, _levelled(content) if version == 1 else content)
    try:
        gpu, cpu = targets(config.slurm)
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


@dataclass(frozen=True)
class _Workloads:
    """Section `workloads`."""

    installed: list[str] | None = None
    config: dict[str, dict[str, Any] | None] | None = None


@dataclass(frozen=True)
class _Config:
    """A configuration in the form of version 2."""

    llmb_repo: str
    llmb_install: str
    gpu_type: str
    slurm: dict[str, Any]
    cluster_name: str | None = None
    install: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] | None = None
    workloads: _Workloads = _Workloads()


def _levelled(content: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 in the form of version 2; its Slurm section keeps its own."""
    given = content.get("launcher")
    launcher = given if isinstance(given, dict) else {}
    install = content.get("install") or {}
    if isinstance(install, dict) and "node_architecture" in launcher:
        install = {"node_architecture": launcher["node_architecture"], **install}
    return {**content, **{key: launcher[key] for key in _LEVELLED if key in launcher}, "install": install}


def _checked(file: str, content: Mapping[str, Any]) -> _Config:
    """The configuration in the types that it should have. Raises Trouble, which names the key that has not."""
    from pydantic import ValidationError  # noqa: PLC0415 - costs 0.1 s, and the first frame needs none

    given = {key: value for key, value in content.items() if value is not None}
    try:
        config: _Config = _adapter().validate_python(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise unreadable(file, f"Its key `{key}` is not what llmb-run has there: {first['msg']}.") from None
    return config


@cache
def _adapter() -> TypeAdapter[_Config]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - see `_checked`

    return TypeAdapter(_Config)


def _unknown_version(file: str, version: object) -> Trouble:
    if version is None:
        return unreadable(file, "It has neither a section `launcher` nor a number `schema_version`.")
    shown = version if isinstance(version, int) else "something else than a number"
    return unreadable(file, f"Its form is {shown}; known are 1 and 2. A newer llmb-tui may know it.")


def _workloads(section: _Workloads) -> tuple[LlmbWorkload, ...]:
    """The installed ones, in order: a file may name one twice."""
    config = section.config or {}
    found = {}
    for name in section.installed or ():
        settings = config.get(name) or {}
        venv, environment = settings.get("venv_path"), settings.get("environment")
        found[name] = LlmbWorkload(
            clean_line(name),
            clean_line(venv) if isinstance(venv, str) and venv else None,
            _names(environment if isinstance(environment, dict) else {}),
        )
    return tuple(found.values())


def _names(environment: Mapping[str, Any] | None) -> tuple[str, ...]:
    return tuple(clean_line(str(name)) for name in environment or {})
