"""`make test-upstream`: installs NVIDIA's real scripts and packages, as the program does, and prints each result.

The repositories, `setup.sh`, Python, pip and every package are real. Slurm, Enroot and the gated tokenizer are
stand-ins: `srun` runs its command on this machine, an image is a line of text, and the model hub is a server of this
process. All files are below `.upstream`; an environment of NeMo takes 10 GB and some ten minutes.

    python -m tests.upstream [--git FOLDER] [--keep] RECIPE...

FOLDER holds mirrors `NAME.git` for a machine that does not reach GitHub. Each recipe needs its Python on PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.step_state import explain
from llmb_tui.launch.upstream.install import upstream_install
from llmb_tui.launch.upstream.paths import upstream_paths
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.preflight.secret import HUB_TOKEN
from llmb_tui.request import RunRequest

ROOT = Path(__file__).resolve().parents[2] / ".upstream"
SELECTIONS = {
    "grok1@25.02": ("314b", "h100", "bf16", 64),
    "llama3.1@24.11": ("405b", "h100", "fp8", 576),
    "llama3.1@25.04": ("8b", "h100", "bf16", 16),
    "nemotron4@25.04": ("15b", "h100", "fp8", 64),
    "nemotron4-340b@25.12": ("340b", "gb200", "fp8", 128),
}
GITHUB = "https://github.com/NVIDIA/"
LAUNCHER = "NeMo-Framework-Launcher"
"""Folder that the container of 24.09 has in /opt; its content is at the tag of that name."""
TOLD = "torch torchvision huggingface-hub leptonai pyarrow pangu setuptools megatron-core nemo-run nemo-toolkit".split()
_SRUN = """\
#!/bin/sh
while [ "$1" != bash ]; do shift; done
shift 2
exec bash -c "$(printf '%s' "$1" | sed "s|/opt/{launcher}|{folder}|g")"
"""
_ENROOT = """\
#!/bin/sh
[ "$1" != import ] || echo 'hsqs, stand-in of an image' >"$3"
"""
_GITCONFIG = """\
[url "{folder}/"]
\tinsteadOf = https://github.com/NVIDIA/
[uploadpack]
\tallowFilter = true
\tallowAnySHA1InWant = true
[safe]
\tdirectory = *
[core]
\tsparseCheckout = true
[init]
\ttemplateDir = {template}
"""
"""Large files that a mirror may lack."""
_SPARSE = "/*\n!/docs/\n!*.dict\n!*.model\n"


class Hub(BaseHTTPRequestHandler):
    """The model hub, with one file for every requested name."""

    names = (
        "config.json",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
    )
    commit = "0" * 40

    def do_HEAD(self) -> None:
        """Answer like GET, without a body."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """Answer with a model's list of files, or with a file."""
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        about: dict[str, Any] = {
            "id": "stand-in",
            "sha": self.commit,
            "siblings": [{"rfilename": n} for n in self.names],
        }
        content = json.dumps(about if self.path.startswith("/api/") else "stand-in").encode()
        self.send_response(200)
        for name, value in (
            ("ETag", f'"{self.commit}"'),
            ("X-Repo-Commit", self.commit),
            ("Content-Length", len(content)),
        ):
            self.send_header(name, str(value))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def main() -> int:
    """Install the named recipes, one after the other; return 1 if a step of one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.upstream")
    parser.add_argument("--git", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the installed files")
    parser.add_argument("recipes", nargs="*", choices=[[], *SELECTIONS], default=[])
    args = parser.parse_args()
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    went_well = True
    for recipe in args.recipes or SELECTIONS:
        folder = ROOT / recipe
        shutil.rmtree(folder, ignore_errors=True)
        went_well &= _install(recipe, folder, _environment(folder, args.git, f"http://127.0.0.1:{hub.server_port}"))
        if not args.keep:
            shutil.rmtree(folder)
    return 0 if went_well else 1


def _environment(folder: Path, mirrors: Path | None, hub: str) -> dict[str, str]:
    home, programs = folder / "home", folder / "bin"
    token = home / HUB_TOKEN
    for file_path in (programs, token.parent):
        file_path.mkdir(parents=True)
    token.write_text("hf_standin\n")
    if mirrors:
        (folder / "template/info").mkdir(parents=True)
        (folder / "template/info/sparse-checkout").write_text(_SPARSE)
        text = _GITCONFIG.format(folder=mirrors.resolve(), template=folder / "template")
        (home / ".gitconfig").write_text(text)
    for name, text in (("srun", _SRUN.format(launcher=LAUNCHER, folder=folder / LAUNCHER)), ("enroot", _ENROOT)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "https_", "HTTPS_", "SSL_"))}
    path = f"{programs}:{os.environ['PATH']}"
    return {**kept, "HOME": str(home), "PATH": path, "LC_ALL": "C.UTF-8", "HF_ENDPOINT": hub}


def _install(recipe_id: str, folder: Path, environment: dict[str, str]) -> bool:
    catalog = load_presets()
    recipe = catalog.recipe(recipe_id)
    chosen = plan(catalog, Selection(recipe.workload, recipe.release, *SELECTIONS[recipe_id]))
    profile = SlurmProfile("here", "localhost", "nobody", "nowhere", str(folder / "install"))
    request = RunRequest(recipe, chosen, profile, "upstream")
    _say(f"\n{recipe_id}, in {folder}")
    if recipe_id == "llama3.1@24.11":
        clone = ["git", "clone", "-q", "-c", "advice.detachedHead=false", "--branch", "24.09", f"{GITHUB}{LAUNCHER}"]
        subprocess.run([*clone, str(folder / LAUNCHER)], check=True, env=environment)
    steps = upstream_install(request)
    for step in steps:
        log, started = folder / f"{step.id}.log", monotonic()
        place = folder / "steps" / step.id
        place.mkdir(parents=True)
        script = f'dir={place}\nowner=me@here.1.2\nwork() {{\n{step.work}\n}}\n(set -e; work "$@")'
        with log.open("wb") as out:
            work = ["sh", "-c", script, "sh", *step.args]
            code = subprocess.run(
                work, check=False, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            ).returncode
        whole = all(Path(path).is_dir() or Path(path).is_file() for path in step.results)
        _say(f"  {'done' if code == 0 and whole else 'FAILED':6} {monotonic() - started:6.0f} s  {step.title}")
        if code or not whole:
            failure = explain(log.read_text(errors="replace").splitlines()[-25:])
            _say(f"         {failure.line}\n         {failure.reason} {failure.fix}")
            return False
    _tell(Path(upstream_paths(request).environment or "/nowhere"))
    return True


def _tell(environment: Path) -> None:
    """Print the size of the environment, and the versions that differ from the pinned ones."""
    if not environment.exists():
        _say("  It needs no Python environment.")
        return
    listed = subprocess.run(
        [environment / "bin/pip", "list", "--format=json"], capture_output=True, text=True, check=True
    )
    versions = {each["name"].replace("_", "-"): each["version"] for each in json.loads(listed.stdout)}
    size = sum(path.lstat().st_size for path in environment.rglob("*"))
    _say(f"  {len(versions)} packages, {size / 1e9:.1f} GB: "
         + ", ".join(f"{name} {versions[name]}" for name in TOLD if name in versions))  # fmt: skip


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
