"""The wheels that pip has in place of its index: `make` puts those of NeMo-Run's needs into the folder `.wheels`.

They are fetched once, from the index that pip is set up for, at the versions of `requirements.lock`, for the Python of
the rig's login node; a mark with the lock's hash is written last. `write_stand_ins` adds packages of the same name as
large or private ones, with nothing in them.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.recipes.files.package import stand_in_build

HERE = Path(__file__).parent
ROOT = HERE.parents[1] / ".wheels"
LOCK = HERE / "requirements.lock"
PYTHON = "/usr/bin/python3"
"""The Python of the rig's login node."""
PIP = "pip"
"""Folder beside the wheels: what that Python puts into a new environment."""
STAND_INS = {
    "torch": ("2.8.0",),
    "torchvision": ("0.23.0",),
    "scipy": ("1.12.0", "1.16.0"),
    "nvidia-modelopt": ("0.35.1",),
    "pyarrow": ("19.0.1", "22.0.0"),
    "bitsandbytes": ("0.46.0", "0.48.1"),
}
"""Packages that the setup scripts install by name; the newest are what they get without a version."""


def make() -> Path:
    """The folder with the wheels, made where it is not whole. Raises RuntimeError with what pip said."""
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
    """Of the login node's Python, such as `3.11`."""
    return _run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()


def _download(folder: Path, work: Path) -> None:
    """With the pip of that Python: what is right for it depends on its version."""
    _run([PYTHON, "-m", "venv", str(work)])
    pip = [str(work / "bin" / "pip"), "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, "--only-binary=:all:", "--dest", str(folder), "-r", str(LOCK)])
    (packages,) = work.glob("lib/python*/site-packages")
    packages.rename(folder / PIP)
    shutil.rmtree(work)


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr}")
    return done.stdout


def write_stand_ins(folder: Path) -> None:
    """Add the empty packages, and the stand-in of `huggingface-cli`, to a folder of wheels."""
    for name, versions in STAND_INS.items():
        # Not under its own name: other packages look for it, and would take it for the real one.
        module = f"stand_in_{name.replace('-', '_')}.py"
        for version in versions:
            _write(folder, name, version, {module: '"""Stand-in for tests: there is nothing in this package."""\n'})
    hub = (HERE / "files" / "huggingface_hub" / "__init__.py").read_text()
    commands = "[console_scripts]\nhuggingface-cli = huggingface_hub:main\n"
    _write(folder, "huggingface-hub", "0.26.5", {"huggingface_hub/__init__.py": hub}, commands)


def _write(folder: Path, name: str, version: str, files: dict[str, str], entry_points: str = "") -> None:
    about = {"name": name, "version": version, "entry_points": entry_points}
    stand_in_build.write_wheel(str(folder), about, {path: text.encode() for path, text in files.items()})
