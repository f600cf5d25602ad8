"""`Outside`: what a rig has in place of GitHub, pip's index and Hugging Face, as far as the recipes need them.

The operator's own files say so to git and to pip, for sessions and jobs alike; the program under test knows nothing.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.recipes import repositories, wheels
from tests.recipes.repositories import COMMITS, NAMES
from tests.rig.cluster import Rig
from tests.rig.machine import OPERATOR_GROUP, OPERATOR_ID, REPOSITORY

GITHUB = "https://github.com/NVIDIA/"
HUB_TOKEN = "hf_" + "standin" * 5
_HOOK = """\
#!/bin/sh
name=$(basename "$PWD")
while [ -e "/run/rig/hold/$name" ]; do
    touch "/run/rig/hold/$name.reached"
    sleep 0.1
done
exec "$@"
"""
"""Program that runs before git's server sends data, so that a clone can be paused."""
_SRUN = """\
#!/bin/sh
if [ ! -e /run/rig/faults/old-srun ]; then
    export SLURM_STDOUTMODE="${SRUN_OUTPUT-$SLURM_STDOUTMODE}" SLURM_STDERRMODE="${SRUN_ERROR-$SLURM_STDERRMODE}"
    [ "$SLURM_STDOUTMODE" ] || unset SLURM_STDOUTMODE
    [ "$SLURM_STDERRMODE" ] || unset SLURM_STDERRMODE
fi
exec /usr/bin/srun "$@"
"""
"""Names of variables that srun reads since Slurm 23.02; older versions, such as ours, 22.05, read only the old name."""
_SBATCH = """\
#!/bin/sh
if [ "$*" = --version ] && [ ! -e /run/rig/faults/old-srun ]; then
    echo "slurm 23.02.0"
    exit
fi
exec /usr/bin/sbatch "$@"
"""
"""Program that prints the version of such an srun."""
_ENSUREPIP = """\
import subprocess
import sys
import sysconfig
from pathlib import Path

SCRIPT = "import sys\\nfrom pip._internal.cli.main import main\\nsys.exit(main())\\n"
copy = ["cp", "--recursive", "--link"]
subprocess.run([*copy, "{pip}/.", sysconfig.get_path("purelib")], check=True)
for name in ("pip", "pip3", "pip%d.%d" % sys.version_info[:2]):
    script = Path(sysconfig.get_path("scripts"), name)
    script.write_text(f"#!{{sys.executable}}\\n{{SCRIPT}}")
    script.chmod(0o755)
"""
"""Program that `python3 -m venv` runs in a new environment."""
PIP_CONF = ".config/pip/pip.conf"
_HERE = """\
[global]
no-index = true
find-links = {}
disable-pip-version-check = true
[install]
compile = no
"""
"""Compiling every module of every package took two thirds of an install's time; Python compiles the imported ones."""
_NOWHERE = "[global]\nindex-url = https://127.0.0.1:9/simple\nretries = 0\ntimeout = 2\n"


class Outside:
    """Replacements of one rig, below `rig.directory / "outside"`, owned by the operator."""

    hub_token = HUB_TOKEN
    """The only token that `huggingface-cli` accepts."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.directory = rig.directory / "outside"
        self.wheels = self.directory / "wheels"
        """Everything that the setup scripts get from pip's index."""
        shutil.copytree(wheels.make(), self.wheels)
        wheels.write_stand_ins(self.wheels)
        self.repositories = repositories.make(self.directory / "git", self.wheels)
        (self.directory / "hold-clone").write_text(_HOOK)
        (self.directory / "hold-clone").chmod(0o755)
        self.presets = self.directory / "presets"
        """Copies of the five presets, with the stand-ins' commits and the login node's Python."""
        shutil.copytree(REPOSITORY / "presets" / "model", self.presets / "model")
        python = f'python_exact = "{wheels.python_version()}"'
        for preset in (REPOSITORY / "presets").glob("*.toml"):
            text = self.repositories.translated(preset.read_text()).replace('python_exact = "3.12"', python)
            (self.presets / preset.name).write_text(text)
        (self.presets / "constraints").mkdir()
        wheels.write_constraints(self.presets / "constraints")
        # Files that the images of the older recipes have in /opt. They stay, because they affect no other test.
        shutil.copytree(repositories.FILES / "opt", rig.knobs / "opt")
        repositories.make_checkout(rig.knobs / "opt" / "NeMo")
        self._hold_pip_ready()
        for path in (self.directory, rig.knobs / "opt"):
            rig.as_root(["chown", "--recursive", f"{OPERATOR_ID}:{OPERATOR_GROUP}", str(path)], check=True)

    def _hold_pip_ready(self) -> None:
        """New environments get a copy of pip: installing it takes three seconds each time."""
        argv = [wheels.PYTHON, "-c", "import ensurepip; print(ensurepip.__path__[0])"]
        folder = self.rig.as_root(argv, check=True).stdout.strip()
        program = self.directory / "ensurepip.py"
        program.write_text(_ENSUREPIP.format(pip=self.wheels / wheels.PIP))
        self.rig.as_root(["mount", "--bind", str(program), f"{folder}/__main__.py"], check=True)

    def commit(self, real: str) -> str:
        """The stand-in's commit for one of NVIDIA's."""
        return self.repositories.ids[real]

    def use_presets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the copies the program's built-in presets for the rest of the test."""
        for room in ("load", "kept"):
            monkeypatch.setattr(f"llmb_tui.catalog.{room}.builtin_dir", lambda: self.presets)

    def need_little(self, *besides: str) -> None:
        """Reduce NeMo's requirements for the rest of the test to a few of the 130 packages that upstream names.

        NeMo-Run can only be imported, unless `besides` names it: the real one takes pip and Python five seconds.
        """
        self.rig.set("few-needs", " ".join(("torch", "bitsandbytes", *besides)))

    def bundle(self, name: str, folder: Path) -> Path:
        """All of a repository, and its tags, in a file `NAME.bundle`."""
        file = folder / f"{name}.bundle"
        path = self.repositories.path(name)
        self.rig.as_operator(["git", "-C", str(path), "bundle", "create", "-q", str(file), "--all"], check=True)
        return file

    def bring(self, folder: Path) -> None:
        """Add the files that a user copies to an offline cluster: the folder of wheels, and repository bundles."""
        folder.mkdir()
        os.chown(folder, OPERATOR_ID, OPERATOR_GROUP)
        shutil.copytree(self.wheels, folder / "wheels")
        for name in NAMES:
            self.bundle(name, folder)

    @contextmanager
    def reachable(self) -> Iterator[None]:
        """Make git and pip find the stand-ins in their usual places within the block."""
        url = (self.directory / "git").as_uri()
        hook = self.directory / "hold-clone"
        self._write(".gitconfig", f'[url "{url}/"]\n\tinsteadOf = {GITHUB}\n[uploadpack]\n\tpackObjectsHook = {hook}\n')
        self._write(PIP_CONF, _HERE.format(self.wheels))
        (self.rig.knobs / "hold").mkdir(exist_ok=True)
        (self.rig.knobs / "hold").chmod(0o1777)
        self.rig.set("hub-token", HUB_TOKEN)
        programs = {self.rig.directory / "bin" / name: text for name, text in (("srun", _SRUN), ("sbatch", _SBATCH))}
        for program, text in programs.items():
            program.write_text(text)
            program.chmod(0o755)
        # Remove pip's earlier builds, so that it builds again when a test needs it to.
        shutil.rmtree(self.rig.home / ".cache" / "pip", ignore_errors=True)
        try:
            yield
        finally:
            for program in programs:
                program.unlink(missing_ok=True)  # a test may have put its own there
            shutil.rmtree(self.rig.knobs / "hold")
            (self.rig.home / ".gitconfig").unlink()
            (self.rig.home / PIP_CONF).unlink()

    @contextmanager
    def no_internet(self) -> Iterator[None]:
        """Hide the stand-ins from git and pip within the block, which must be in one of `reachable`."""
        kept = {name: (self.rig.home / name).read_text() for name in (".gitconfig", PIP_CONF)}
        self._write(".gitconfig", "")
        self._write(PIP_CONF, _NOWHERE)
        try:
            yield
        finally:
            for name, text in kept.items():
                self._write(name, text)

    @contextmanager
    def lost(self, real: str) -> Iterator[None]:
        """Remove a commit from its repository within the block: it is not public."""
        ours = self.commit(real)
        name = next(name for name, commits in COMMITS.items() if real in commits)
        path = self.repositories.path(name)
        file = path / "objects" / ours[:2] / ours[2:]
        git = ["git", "-C", str(path)]
        self.rig.as_operator([*git, "update-ref", "-d", f"refs/heads/{real[:7]}"], check=True)
        away = file.rename(path / f"lost-{ours}")
        try:
            yield
        finally:
            away.rename(file)
            self.rig.as_operator([*git, "update-ref", f"refs/heads/{real[:7]}", ours], check=True)

    def _write(self, name: str, text: str) -> None:
        path = self.rig.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for file_path in (path, path.parent, path.parent.parent):
            if file_path.is_relative_to(self.rig.home):
                os.chown(file_path, OPERATOR_ID, OPERATOR_GROUP)


@functools.cache
def of(rig: Rig) -> Outside:
    """The replacements of a rig, made once."""
    return Outside(rig)
