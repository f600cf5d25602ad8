"""Real NeMo on a CPU: `python -m tests.nemo.environment` makes the folder `.nemo`, `command` runs a Python with it.

`.nemo/venv` has the packages that every NeMo needs, `.nemo/<version>` a NeMo and its Megatron Core, which PYTHONPATH
puts before the venv's packages. A file `requirements*.lock` in this folder pins each of them. A part is made again if
its file has changed or an earlier attempt was interrupted: a mark with the lock's hash is written last. It needs Linux,
Python 3.11 and 3 GB.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

HERE = Path(__file__).parent
ROOT = HERE.parents[1] / ".nemo"
VERSIONS = ("2.2.1", "2.4.0", "2.5.0")
"""NeMo's versions, oldest first."""
TORCH = "2.13.0+cpu"
_PYTHON = (3, 11)
_MARK = ".complete"
_TRY = "import nemo, torch; from nemo.collections import llm; llm.pretrain; print(nemo.__version__, torch.__version__)"


def command(version: str) -> tuple[list[str], dict[str, str]]:
    """Start of an argument list, and the whole environment, for a Python with that NeMo, no GPU and no network.

    Raises RuntimeError if it has not been made.
    """
    for part in ("venv", version):
        if not _is_complete(part):
            raise RuntimeError(f"{ROOT / part} has not been made: run `python -m tests.nemo.environment`")
    return _command(version)


def _command(version: str) -> tuple[list[str], dict[str, str]]:
    environment = {
        "PATH": os.defpath,
        "HOME": str(ROOT / "home"),  # NeMo, NeMo-Run and Matplotlib write there
        "PYTHONPATH": os.pathsep.join((str(HERE / "stand_ins"), str(ROOT / version))),
        "PYTHONWARNINGS": "ignore",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    return [str(ROOT / "venv" / "bin" / "python")], environment


def make() -> None:
    """Make the missing parts. Raises RuntimeError if this machine does not support them."""
    if sys.platform != "linux":
        raise RuntimeError(f"NeMo's tests need Linux; this is {sys.platform}.")
    (ROOT / "home").mkdir(parents=True, exist_ok=True)
    with (ROOT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makers would remove each other's parts
        _part("venv", _make_venv)
        for version in VERSIONS:
            _part(version, lambda path, version=version: _make_version(path, version))  # type: ignore[misc]


def _part(name: str, fill: Callable[[Path], None]) -> None:
    path, started = ROOT / name, monotonic()
    if _is_complete(name):
        _say(f"{path} is as it should be")
        return
    _say(f"making {path} ...")
    shutil.rmtree(path, ignore_errors=True)
    fill(path)
    (path / _MARK).write_text(_digest(name))
    _say(f"made {path} in {monotonic() - started:.0f} s")


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _make_venv(path: Path) -> None:
    _run([_python(), "-m", "venv", str(path)])
    try:
        _install(_lock("venv"))
    except subprocess.CalledProcessError as error:
        raise RuntimeError(
            f"pip could not install {_lock('venv')}. If it found no torch=={TORCH}: PyTorch's own index has its CPU "
            "builds, the Python Package Index has not; name it with PIP_EXTRA_INDEX_URL, or a folder that holds the "
            "wheel with PIP_FIND_LINKS."
        ) from error


def _make_version(path: Path, version: str) -> None:
    _install(_lock(version), "--target", str(path))
    argv, environment = _command(version)
    done = _run([*argv, "-c", _TRY], environment)  # also compiles the imported modules
    if not done.endswith(f"{version} {TORCH}\n"):
        raise RuntimeError(f"{path} answers {done!r}, not NeMo {version} with torch {TORCH}")


def _install(lock: Path, *options: str) -> None:
    # Most of 60,000 modules are never imported; Python compiles those that are.
    pip = [str(ROOT / "venv" / "bin" / "python"), "-m", "pip", "install", "--no-compile"]
    _run([*pip, "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement", str(lock), *options])


def _run(argv: list[str], environment: dict[str, str] | None = None) -> str:
    return subprocess.run(argv, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def _python() -> str:
    """Path of the Python version that the wheels in the lock are for."""
    if sys.version_info[:2] == _PYTHON:
        return sys.executable
    name = "python{}.{}".format(*_PYTHON)
    if found := shutil.which(name):
        return found
    raise RuntimeError(f"NeMo's tests need {name}: the versions that are pinned are for it.")


def _is_complete(part: str) -> bool:
    mark = ROOT / part / _MARK
    return mark.is_file() and mark.read_text() == _digest(part)


def _digest(part: str) -> str:
    """Hash of the locks of this version and of the venv, with which its packages were tested."""
    return hashlib.sha256(_lock("venv").read_bytes() + _lock(part).read_bytes()).hexdigest()


def _lock(part: str) -> Path:
    return HERE / ("requirements.lock" if part == "venv" else f"requirements-{part}.lock")


if __name__ == "__main__":
    try:
        make()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"{error}")
