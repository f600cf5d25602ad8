"""Entry script of the NeMo 2 containers: build NeMo's own recipe, apply a file's settings to it in order, run it.

    python pretrain.py launch.json            train; one process for each GPU runs it, by srun or by torchrun
    python pretrain.py --check launch.json …  build and print, train nothing

`launch.json` holds exactly

    factory    "module:function" of a recipe of NeMo's
    arguments  what the function takes: name -> value
    settings   field of the recipe -> value, applied in this order

A field is a path such as `trainer.strategy.sequence_parallel`. `trainer.callbacks[TimingCallback].log_tokens_per_sec`
is a field of the callback of that class; without a field, `trainer.callbacks[TimingCallback]` is the callback itself,
which a value replaces or adds and null removes. A value is JSON as it stands, or an object with one of these keys:

    {"config": "module:callable", "with": {…}}   called with these arguments when the recipe is built
    {"partial": "module:callable", "with": {…}}  the same, but handed over uncalled
    {"call": "module:callable", "with": {…}}     what it answers now; NeMo's factories answer configurations
    {"object": "module:name"}                    what the module holds by that name
    {"part": "model.config"}                     the very object at that path of the recipe

`with` may be left out, and may hold such objects. What the container's NeMo does not know is refused, also where NeMo
itself would take any name. Before it trains, rank 0 prints versions and every field that the recipe or the file
sets; what is not printed has NeMo's default. The first rank of each node prints the node's GPUs, if it trains and
`nvidia-smi` answers. It ends with 2 when its arguments or a file are wrong, before NeMo is imported, and with 3 when
NeMo does not know what a file names. Whatever NeMo raises is not caught.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

_PATH = re.compile(r"[^\W\d]\w*(\[\w+\])?(\.[^\W\d]\w*(\[\w+\])?)*", re.ASCII)
_STEP = re.compile(r"\w+|\[\w+\]", re.ASCII)
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", re.ASCII)
_CALLED = ("config", "partial", "call")
_FORMS = (*_CALLED, "object", "part")


class UnknownError(Exception):
    """The container's NeMo does not know what the file names."""


@dataclass(frozen=True)
class LaunchFile:
    """What `launch.json` holds: exactly these keys."""

    factory: str
    arguments: dict[str, Any]
    settings: dict[str, Any]


def read_launch(text: str) -> LaunchFile:
    """Read the JSON text. Raises ValueError saying what is wrong with it; needs no NeMo."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    if wrong := {field.name for field in fields(LaunchFile)} ^ values.keys():
        raise ValueError(f"keys that are unknown or missing: {', '.join(sorted(wrong))}")
    launch = LaunchFile(**values)
    _check_value({"call": launch.factory, "with": launch.arguments}, "factory")
    if not isinstance(launch.settings, dict):
        raise ValueError("settings are no JSON object")
    for path, value in launch.settings.items():
        if not _PATH.fullmatch(path):
            raise ValueError(f"settings: {path!r} is no path such as `model.config`")
        _check_value(value, path)
    return launch


def _check_value(value: object, where: str) -> None:
    """Raise ValueError for an object that has one of the keys but not their form, at any depth."""
    parts = value if isinstance(value, (dict, list)) else []
    if isinstance(value, dict) and (form := next((form for form in _FORMS if form in value), None)):
        parts = value.get("with", {})
        allowed = {form, "with"} if form in _CALLED else {form}
        pattern = _PATH if form == "part" else _NAME
        if not (value.keys() <= allowed and isinstance(parts, dict) and pattern.fullmatch(str(value[form]))):
            raise ValueError(f"{where}: {json.dumps(value)} is none of the objects that a value can be")
    for part in parts.values() if isinstance(parts, dict) else parts:
        _check_value(part, where)


def build(launch: LaunchFile) -> Any:
    """NeMo's recipe, a `fiddle.Partial`, with the settings applied. Raises UnknownError."""
    version, where = _import_name("nemo:__version__"), "factory"
    try:
        recipe = _build_value(None, {"call": launch.factory, "with": launch.arguments})
        for where, value in launch.settings.items():
            _apply(recipe, where, value)
    except UnknownError as error:
        hint = f"This container has NeMo {version}: use one that the preset names."
        raise UnknownError(f"{where}: {error}. {hint}") from error
    return recipe


def _apply(recipe: Any, path: str, value: object) -> None:
    *steps, last = _STEP.findall(path)
    built, node, name = _build_value(recipe, value), _at(recipe, steps), last.strip("[]")
    if name == last:
        _need_field(node, name)
        setattr(node, name, built)
    elif not isinstance(node, list):
        raise UnknownError(f"{_text(node)} is no list")
    elif built is None:
        del node[_place(node, name)]
    elif _class_name(built) != name:
        raise UnknownError(f"{_text(built)} is no {name}")
    else:
        place = _place(node, name) if name in map(_class_name, node) else len(node)
        node[place : place + 1] = [built]


def _at(recipe: Any, steps: list[str]) -> Any:
    """What is at a path of the recipe, also where it is NeMo's default."""
    for step in steps:
        if step.startswith("["):
            recipe = recipe[_place(recipe, step[1:-1])]
        else:
            _need_field(recipe, step)
            recipe = _arguments(recipe, defaults=True).get(step)
    return recipe


def _place(items: Any, name: str) -> int:
    """Index of the list's configuration of the class with that name. Raises UnknownError where there is none."""
    names = [_class_name(item) for item in items] if isinstance(items, list) else []
    if name not in names:
        raise UnknownError(f"there is no {name}")
    return names.index(name)


def _build_value(recipe: Any, value: Any) -> Any:
    """The value that a JSON value stands for."""
    if isinstance(value, list):
        return [_build_value(recipe, part) for part in value]
    if not isinstance(value, dict):
        return value
    form = next((form for form in _FORMS if form in value), None)
    parts = value.get("with", {}) if form else value
    arguments = {name: _build_value(recipe, part) for name, part in parts.items()}
    return _build_object(recipe, form, value[form], arguments) if form else arguments


def _build_object(recipe: Any, form: str, name: str, arguments: dict[str, Any]) -> Any:
    if form == "part":
        return _at(recipe, _STEP.findall(name))
    target = _import_name(name)
    if form == "object":
        return _as_config(target)
    if not callable(target):
        raise UnknownError(f"{name} cannot be called")
    if unknown := sorted(arguments.keys() - _fields(target)):
        raise UnknownError(f"{name} has no argument {', '.join(unknown)}")
    if form == "call":
        return target(**arguments)
    nemo_run = importlib.import_module("nemo_run")
    return (nemo_run.Config if form == "config" else nemo_run.Partial)(target, **arguments)


def _as_config(value: Any) -> Any:
    """A dataclass' object, such as a userbuffers configuration, as a configuration: built, it equals the object.

    So its fields can be set, checked and printed, and NeMo's own object, which other recipes share, stays as it is.
    """
    if not is_dataclass(value) or isinstance(value, type):
        return value
    convert = importlib.import_module("fiddle.experimental.dataclasses").convert_dataclasses_to_configs
    plain = convert(value, allow_post_init=True)  # as nemo-run converts what it is given
    return importlib.import_module("fiddle").cast(importlib.import_module("nemo_run").Config, plain)


def _import_name(name: str) -> Any:
    """What a module holds under `module:name`. A module that is there but cannot be imported raises what it raises."""
    module, _, names = name.partition(":")
    try:
        value: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise UnknownError(f"there is no module {error.name}") from error
    for part in names.split("."):
        if not hasattr(value, part):
            raise UnknownError(f"{module} has no {names}")
        value = getattr(value, part)
    return value


def _need_field(node: Any, name: str) -> None:
    """Raise UnknownError unless a configuration has the field, by its callable or because the recipe has set it."""
    if not _class_name(node):
        raise UnknownError(f"{_text(node)} has no field {name}")
    if name not in _fields(node.__fn_or_cls__) and name not in _arguments(node):
        raise UnknownError(f"{_label(node.__fn_or_cls__)} has no field {name}")


def _fields(target: Any) -> set[str]:
    """Names of the arguments that a callable has. A class that takes `**kwargs` has those of its bases, too."""
    functions = [target]
    if isinstance(target, type):
        functions = [vars(each)["__init__"] for each in target.__mro__ if "__init__" in vars(each)]
    names: set[str] = set()
    for function in functions:
        parameters = inspect.signature(function).parameters.values()
        names |= {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return names - {"self"}


def _arguments(node: Any, *, defaults: bool = False) -> dict[Any, Any]:
    """What is set of a configuration, in the order of its callable's signature."""
    return dict(importlib.import_module("fiddle").ordered_arguments(node, include_defaults=defaults))


def _class_name(item: Any) -> str:
    """Name of what a configuration configures; nothing for any other object."""
    return str(getattr(getattr(item, "__fn_or_cls__", None), "__name__", ""))


def libraries() -> Iterator[str]:
    """What else a step time depends on, as far as it can be told: nothing here may keep a training from its start."""
    torch: Any = sys.modules.get("torch")
    engine: Any = sys.modules.get("transformer_engine")
    asked: tuple[tuple[str, Callable[[], object]], ...] = (
        ("PyTorch", lambda: torch.__version__),
        ("CUDA", lambda: torch.version.cuda),
        ("NCCL", lambda: ".".join(map(str, torch.cuda.nccl.version()))),
        ("Transformer Engine", lambda: engine.__version__),
        ("NVIDIA driver", driver),
    )
    for name, ask in asked:
        with contextlib.suppress(Exception):
            if (version := ask()) is not None:
                yield f"{name} {version}"


def driver(path: str = "/proc/driver/nvidia/version") -> str | None:
    """Version of this node's, as its kernel module says."""
    with open(path, encoding="ascii") as file:
        found = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)\s", file.read(4096))
    return found[1] if found else None


def print_gpus(timeout_s: float = 10.0) -> None:
    """Print the GPUs of this node, or nothing if `nvidia-smi` fails: nothing may keep a training from its start."""
    quiet = subprocess.DEVNULL
    with contextlib.suppress(Exception):
        asked = subprocess.Popen(("nvidia-smi", "-L"), stdin=quiet, stdout=subprocess.PIPE, stderr=quiet)
        try:
            listing = asked.communicate(timeout=timeout_s)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            asked.kill()  # and is not waited for: a process that hangs in the driver does not end
            return
        if asked.returncode == 0 and (line := gpu_line(listing, socket.gethostname())):
            sys.stdout.buffer.write(f"{line}\n".encode())  # whatever the container's locale is
            sys.stdout.flush()


def gpu_line(listing: str, host: str) -> str | None:
    """The GPUs that `nvidia-smi -L` lists, as `GPUs of node cn001: 8 × NVIDIA H100 80GB HBM3`; None if it lists none.

    MIG devices stand for the GPU that they are slices of: `7 × NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
    """
    names: list[str] = []
    gpu = ""
    for text in listing.splitlines():
        if whole := re.match(r"GPU \d+: (.+?) \(UUID: ", text):
            gpu = whole[1]
            names.append(gpu)
        elif gpu and (part := re.match(r"\s+(MIG \S+)\s+Device\s+\d+: ", text)):
            if names[-1] == gpu:
                names.pop()
            names.append(f"{gpu} {part[1]}")
    kinds = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
    return f"GPUs of node {host.partition('.')[0]}: {kinds}" if kinds else None


def lines(recipe: Any) -> Iterator[str]:
    """Versions, NeMo's and Megatron Core's first; `path = value` for what is set, in the order of NeMo's signatures."""
    yield f"NeMo {importlib.import_module('nemo').__version__}"
    yield f"Megatron Core {importlib.import_module('megatron.core').__version__}"
    yield from libraries()
    seen: dict[int, str] = {}

    def walk(path: str, value: Any) -> Iterator[str]:
        if isinstance(value, list) and any(map(_class_name, value)):
            for item in value:
                yield from walk(f"{path}[{_class_name(item)}]", item)
        elif not _class_name(value):
            yield f"{path} = {_text(value)}"
        elif id(value) in seen:
            yield f"{path} = the same object as {seen[id(value)]}"
        else:
            seen[id(value)] = path
            yield f"{path} = {_label(value.__fn_or_cls__)}"
            for name, part in _arguments(value).items():
                yield from walk(f"{path}.{name}", part)

    for name, part in _arguments(recipe).items():
        yield from walk(str(name), part)


def _text(value: Any) -> str:
    """JSON, or else one line that is the same in every process."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        known = _class_name(value) or hasattr(value, "__qualname__")
        return _label(value) if known else re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))


def _label(target: Any) -> str:
    target = getattr(target, "__fn_or_cls__", target)
    return f"{target.__module__}:{target.__qualname__}"


def main(arguments: list[str]) -> int:
    """Train, or check files. Answers the exit code."""
    check = arguments[:1] == ["--check"]
    paths = arguments[1:] if check else arguments
    first = os.environ.get("SLURM_PROCID", os.environ.get("RANK", "0")) == "0"
    first_of_node = os.environ.get("SLURM_LOCALID", os.environ.get("LOCAL_RANK", "0")) == "0"
    if not paths or (len(paths) > 1 and not check):
        sys.stderr.write("usage: pretrain.py launch.json | pretrain.py --check launch.json ...\n")
        return 2
    launches: list[tuple[str, LaunchFile]] = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                launches.append((path, read_launch(file.read())))
        except (OSError, ValueError) as error:
            sys.stderr.write(f"pretrain.py {path}: {error}\n")
    if len(launches) < len(paths):
        return 2
    code = 0
    for path, launch in launches:
        try:
            recipe = build(launch)
        except UnknownError as error:
            sys.stderr.write(f"pretrain.py {path}: {error}\n")
            code = 3
            continue
        if first:
            sys.stdout.write("\n".join(lines(recipe)) + "\n")
            sys.stdout.flush()
        if not check:
            if first_of_node:
                print_gpus()
            importlib.import_module("fiddle").build(recipe)()
    return code


if __name__ == "__main__":  # the checkpoint writer's processes import this file again
    sys.exit(main(sys.argv[1:]))
