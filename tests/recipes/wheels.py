"""The wheels that pip uses in place of its index: `make` puts NeMo-Run's requirements into the folder `.wheels`.

They are downloaded once, from pip's configured index, at the versions of `requirements.lock`, for the Python of the
rig's login node; a mark with the lock's hash is written last. `write_stand_ins` adds empty packages with the names of
large or private ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from tests.recipes.files.package import stand_in_build

HERE = Path(__file__).parent
ROOT = HERE.parents[1] / ".wheels"
LOCK = HERE / "requirements.lock"
PYTHON = "/usr/bin/python3"
"""Python of the rig's login node."""
PIP = "pip"
"""Folder next to the wheels: the packages that this Python installs in a new environment, with the pip of the lock.

Python's own pip is of 2023 and takes three times as long to select and install NeMo's requirements.
"""
STAND_INS = {
    "torch": ("2.14.1",),
    "torchvision": ("0.23.0",),
    "pyarrow": ("22.0.0",),
    "scipy": ("1.16.0",),
    "nvidia-modelopt": ("0.25.0", "0.31.0", "0.35.1"),
    "bitsandbytes": ("0.45.3", "0.45.5", "0.46.0", "0.48.1"),
    "huggingface-hub": ("2.4.0",),
    "megatron-core": ("0.11.0",),
}
"""Packages at versions that the scripts name themselves, and the newest, which they get without a version."""
CONSTRAINTS = HERE.parents[1] / "presets" / "constraints"
_HUB_WITH_PROGRAM = "0.26.3"


def make() -> Path:
    """Return the folder with the wheels; make it first if it is incomplete. Raises RuntimeError with pip's output."""
    ROOT.mkdir(exist_ok=True)
    with (ROOT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        version = python_version()
        mark, folder = ROOT / f"complete-{version}", ROOT / version
        digest = hashlib.sha256(LOCK.read_bytes() + PIP.encode()).hexdigest()
        if not mark.is_file() or mark.read_text() != digest:
            shutil.rmtree(folder, ignore_errors=True)
            _download(folder, ROOT / "venv")
            mark.write_text(digest)
    return folder


def python_version() -> str:
    """Version of the login node's Python, such as `3.11`."""
    return _run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()


def _download(folder: Path, work: Path) -> None:
    """Use the pip of that Python, because the right files depend on its version."""
    _run([PYTHON, "-m", "venv", str(work)])
    pip = [str(work / "bin" / "pip"), "wheel", "--quiet", "--disable-pip-version-check", "--use-pep517"]
    # `pip wheel`, because antlr4-python3-runtime has no wheel in the index.
    _run([*pip, "--no-deps", "--wheel-dir", str(folder), "-r", str(LOCK)])
    newer = [pip[0], "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    _run([*newer, "--find-links", str(folder), "--upgrade", "pip"])
    (packages,) = work.glob("lib/python*/site-packages")
    packages.rename(folder / PIP)
    shutil.rmtree(work)


def _run(argv: list[str]) -> str:
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {result.stderr}")
    return result.stdout


def write_stand_ins(folder: Path) -> None:
    """Add the empty packages, and the stand-in of `huggingface-cli`, to a folder of wheels."""
    wanted = {(name, version) for name, versions in STAND_INS.items() for version in versions}
    named, real = _named_by_upstream(), set(real_versions())
    for file in CONSTRAINTS.glob("*.txt"):
        ours = named - real if _with_nemo_run(file) else named
        wanted |= {(name, version) for name, version in _pinned(file.read_text()) if name in ours | set(STAND_INS)}
    for name, version in wanted - {("huggingface-hub", _HUB_WITH_PROGRAM)}:
        # The module has another name: other packages look for the real one, and would import this one.
        module = f"stand_in_{name.replace('-', '_')}.py"
        _write(folder, name, version, {module: '"""Stand-in for tests: there is nothing in this package."""\n'})
    hub = (HERE / "files" / "huggingface_hub" / "__init__.py").read_text()
    commands = "[console_scripts]\nhuggingface-cli = huggingface_hub:main\n"
    _write(folder, "huggingface-hub", _HUB_WITH_PROGRAM, {"huggingface_hub/__init__.py": hub}, commands)


def write_constraints(folder: Path) -> None:
    """Copy the presets' constraints; packages that NeMo-Run really needs get the versions of the lock."""
    real = real_versions()
    for file in CONSTRAINTS.glob("*.txt"):
        lines = file.read_text().splitlines()
        if _with_nemo_run(file):
            lines = [line for line in lines if canonical(re.split("[=<]=", line)[0]) not in real]
            lines += [f"{name}=={version}" for name, version in real.items() if name != "nemo-run"]
        (folder / file.name).write_text("\n".join([*lines, ""]))


def canonical(name: str) -> str:
    """Name of a package in the form that indexes compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def real_versions() -> dict[str, str]:
    """Versions of the downloaded packages, which are those in the lock."""
    lock = {canonical(line.split("==")[0]) for line in LOCK.read_text().splitlines()}
    parts = [file.name.split("-")[:2] for file in (ROOT / python_version()).glob("*.whl")]
    return {canonical(name): version for name, version in parts if canonical(name) in lock}


def _with_nemo_run(file: Path) -> bool:
    return file.name.startswith("nemo-")


def _named_by_upstream() -> set[str]:
    files = [path for path in (HERE / "files").rglob("*.txt") if "requirements" in path.name]
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    return {canonical(found[0]) for line in lines if (found := re.match(r"[A-Za-z0-9][\w.-]*", line))}


def _pinned(constraints: str) -> list[tuple[str, str]]:
    return [(canonical(name), version) for name, version in re.findall(r"(?m)^([\w.-]+)==([\w.]+)", constraints)]


def _write(folder: Path, name: str, version: str, files: dict[str, str], entry_points: str = "") -> None:
    about = {"name": name, "version": version, "entry_points": entry_points}
    stand_in_build.write_wheel(str(folder), about, {path: text.encode() for path, text in files.items()})
