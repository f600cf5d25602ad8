"""The wheel has all its files; with only the locked packages that it requires, it runs and renders a batch script."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sysconfig
import venv
from dataclasses import asdict
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from llmb_tui.launch.direct.spec_of import launch_spec
from tests.kit.runs import NEMOTRON, request_for
from tests.launch.launch_cases import PROFILE, RUN_ID

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/launch/golden/nemotron4-25.04.sh"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the program and the packages of the lock that it needs, and no other package."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    for package in needed_packages():
        link_package(package, site_packages(folder))
    pip = [
        str(folder / "bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run(
        [*pip, "."],
        cwd=ROOT, check=True, capture_output=True, env={"PYTHONPATH": sysconfig.get_path("purelib")},
    )  # fmt: skip
    return folder


def needed_packages() -> set[str]:
    """Packages of the lock that the program needs, without those of its extra `dev`."""
    lock = (ROOT / "requirements.lock").read_text()
    locked = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    open_requirements = [Requirement(text) for text in distribution("llmb-tui").requires or ()]
    open_requirements = [each for each in open_requirements if applies(each, {""})]
    needed: dict[str, set[str]] = {}
    while open_requirements:
        requirement = open_requirements.pop()
        name, extras = canonicalize_name(requirement.name), {"", *requirement.extras}
        if name not in locked or extras <= needed.get(name, set()):
            continue
        needed[name] = extras | needed.get(name, set())
        asked = map(Requirement, distribution(name).requires or ())
        open_requirements += [each for each in asked if applies(each, needed[name])]
    return set(needed)


def applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def link_package(name: str, folder: Path) -> None:
    """Link each file of an installed package into `folder`, but its commands."""
    for file in distribution(name).files or ():
        if ".." not in file.parts:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).symlink_to(Path(str(file.locate())).resolve())


def site_packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python*/site-packages")
    return folder


def program(environment: Path, home: Path, *words: str) -> str:
    """What the installed `llmb-tui` prints, away from the checkout."""
    done = subprocess.run(
        [environment / "bin/llmb-tui", *words],
        cwd=home, env={"HOME": str(home), "LANG": "C.UTF-8"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_package_is_in_it(environment: Path) -> None:
    def files(folder: Path) -> set[str]:
        return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}

    presets = {str(preset.relative_to(ROOT)) for preset in (ROOT / "presets").rglob("*") if preset.is_file()}
    assert {"presets/model/coefficients.toml", "presets/failures/training.toml"} <= presets
    assert files(site_packages(environment) / "llmb_tui") == files(ROOT / "llmb_tui") | presets


def test_it_runs_away_from_the_checkout(environment: Path, tmp_path: Path) -> None:
    where = [str(environment / "bin/python"), "-c", "import llmb_tui; print(llmb_tui.__file__)"]
    imported = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(imported).is_relative_to(environment)
    assert program(environment, tmp_path, "--version") == f"llmb-tui {version('llmb-tui')}\n"
    assert re.search(r"^ +plan +show the plan", program(environment, tmp_path, "--help"), re.MULTILINE)
    assert len(program(environment, tmp_path, "list", "-w", "grok1").splitlines()) == 1 + 18
    row = ("-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
    assert "published" in program(environment, tmp_path, "plan", *row)


def test_it_renders_the_golden_script_without_the_packages_that_the_lock_leaves_out(
    environment: Path, tmp_path: Path
) -> None:
    spec = launch_spec(request_for(NEMOTRON, PROFILE), RUN_ID)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(f"{json.dumps(asdict(spec))}\n".encode())
        ours.shutdown(socket.SHUT_WR)
        done = subprocess.run(
            [environment / "bin/python", "-m", "llmb_tui.launch.direct.render_worker"],
            stdin=theirs.fileno(), cwd=tmp_path, env={"HOME": str(tmp_path), "NEMORUN_HOME": str(tmp_path / "nemo")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        theirs.close()
        with ours.makefile() as answer:
            assert json.loads(answer.read())["script"] == GOLDEN.read_text()
