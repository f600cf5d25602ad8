"""`UpstreamInstall`: an install directory on this machine, whose steps use a real git, a real Python and a git host."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.upstream import Commit
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.upstream.install import upstream_install
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan

SETUP = """
set -eu -o pipefail
[ ! -d NeMo ] || { echo "setup found what another one left"; exit 1; }
git clone "$UPSTREAM/NeMo" NeMo
[ ! -e "$HOME/broken" ] || exit 1
touch NeMo/patched
echo "${HF_TOKEN-no token} ${CONDA_PREFIX-no conda} ${VIRTUAL_ENV-no environment} $STAGE_PATH" >>"$HOME/setups"
env | grep -E '^(PIP|UV)_(BUILD_)?CONSTRAINT=' >"$HOME/versions" || :
srun bash -c "enroot import --output $STAGE_PATH/nvidia+nemo+25.02.01.sqsh docker://nvcr.io#nvidia/nemo:25.02.01"
"""


class UpstreamInstall:
    """An install directory on this machine, and a git host in another directory."""

    def __init__(self, folder: Path, recipe: Recipe, make_plan: MakePlan) -> None:
        self.home, self.bin, self.install = folder / "home", folder / "bin", folder / "install"
        self.upstream = folder / "upstream"
        self.variables: dict[str, str] = {}
        """Additional packages of the environment."""
        for path in (self.home, self.bin, self.install, self.upstream):
            path.mkdir()
        self.make_repository("NeMo", {"reinstall.sh": "true"}, "v1")
        self.commit = self.git("-C", str(self.upstream / "NeMo"), "rev-parse", "HEAD").strip()
        self.make_repository("recipes", {"nemotron/setup.sh": SETUP, "nemotron/launch.sh": "true"}, "v25.04")
        self.program("srun", '"$@"')
        self.program("enroot", 'echo "$@" >>"$HOME/imports"; touch "$3"; [ ! -e "$HOME/broken" ] && echo hsqs >"$3"')
        assert recipe.upstream
        nemo = Commit(self.url("NeMo"), self.commit)
        self.scripts = replace(recipe.upstream, repository=self.url("recipes"), commits=(nemo,))
        self.recipe = recipe
        self.make_plan = make_plan

    def url(self, name: str) -> str:
        return f"file://{self.upstream}/{name}"

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], check=True, capture_output=True, text=True, env=self.environment()
        ).stdout

    def make_repository(self, name: str, files: dict[str, str], tag: str) -> None:
        folder = self.upstream / name
        self.git("init", "-q", str(folder))
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        self.git("-C", str(folder), "add", ".")
        self.git("-C", str(folder), "commit", "-qm", "All")
        self.git("-C", str(folder), "tag", tag)

    def program(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def environment(self) -> dict[str, str]:
        who = {f"GIT_{role}_{what}": "me@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        path = f"{self.bin}:{Path(sys.executable).parent}:/usr/bin:/bin"
        own = {"HOME": str(self.home), "PATH": path, "UPSTREAM": f"file://{self.upstream}", "LC_ALL": "C"}
        return {**who, **own, "CONDA_PREFIX": "/opt/conda", **self.variables}

    def request(self) -> RunRequest:
        recipe = replace(self.recipe, upstream=self.scripts)
        profile = replace(PROFILE, install_dir=str(self.install))
        return RunRequest(recipe, self.make_plan(*ROWS["nemotron4-25.04"]), profile, "upstream")

    def steps(self) -> dict[str, InstallStep]:
        install_steps = upstream_install(self.request())
        return {step.id.split("-")[0]: step for step in install_steps}

    def run(self, kind: str) -> str:
        """Run a step and return its output."""
        return self._run(kind)[1]

    def fails(self, kind: str) -> list[str]:
        """Run a step that fails, and return the lines of its output."""
        code, output = self._run(kind)
        assert code != 0, output
        assert not self.done(kind)
        return output.splitlines()

    def _run(self, kind: str) -> tuple[int, str]:
        step = self.steps()[kind]
        folder = self.install / ".llmb-tui/steps" / step.id
        folder.mkdir(parents=True, exist_ok=True)
        place = f"install={self.install} dir={folder} step={step.id} owner=me@site.1.2"
        helpers = f'{remote_text("inside.sh")}\n{place}\ntop "$install"\ncd "$dir"'
        script = f'{helpers}\nwork() {{\n{step.work}\n}}\n(set -e; work "$@")'
        ended = subprocess.run(
            ["sh", "-c", script, "sh", *step.args], env=self.environment(), check=False, cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return ended.returncode, ended.stdout

    def done(self, kind: str) -> bool:
        words = ["sh", "-c", remote_text("there.sh") + 'there "$@"', "sh", *self.steps()[kind].results]
        return subprocess.run(words, env=self.environment(), check=False).returncode == 0

    def made(self, *kinds: str) -> None:
        for kind in kinds:
            output = self.run(kind)
            assert self.done(kind), output
