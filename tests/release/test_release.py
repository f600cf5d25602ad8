"""A release: pipx and uv install its wheel without a network, and the installed program runs outside the checkout."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import asdict
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import llmb_tui
from llmb_tui.launch.direct.spec_of import launch_spec
from tests.kit.runs import NEMOTRON, request_for
from tests.launch.launch_cases import PROFILE, RUN_ID
from tests.recipes.files.package.stand_in_build import write_wheel

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/launch/golden/nemotron4-25.04.sh"
EXCLUDED = {
    line for line in (ROOT / "requirements-excluded.txt").read_text().splitlines() if line and not line.startswith("#")
}
"""Packages that are required and not in `.venv`, because the program never imports them."""
_LINKS = "--no-index --find-links {links}"
INSTALL = {
    "pipx": ("pipx", "install", "--backend", "pip", "--skip-maintenance", "--pip-args", f"--no-compile {_LINKS}"),
    "uv": ("uv", "tool", "install", "--offline", *_LINKS.split()),
}
"""Commands without the wheel. A user without uv has pip as the backend of pipx; maintenance fetches a newer pip."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of the program, and wheels of all packages that it requires, as they are in `.venv`."""
    folder = tmp_path_factory.mktemp("wheels")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    for name, versions in required_packages().items():
        if name not in EXCLUDED:
            pack(name, folder)
        else:
            lowest = next((each.version for each in versions if versions.contains(each.version)), "1")
            write_wheel(str(folder), {"name": name, "version": lowest}, {})
    return folder


def required_packages() -> dict[str, SpecifierSet]:
    """The packages that the program requires, directly or not, with the permitted versions of each."""
    versions: dict[str, SpecifierSet] = {}
    extras: dict[str, set[str]] = {}
    open_requirements = requirements("llmb-tui", {""})
    while open_requirements:
        requirement = open_requirements.pop()
        name = canonicalize_name(requirement.name)
        versions[name] = versions.get(name, SpecifierSet()) & requirement.specifier
        new_extras = {"", *requirement.extras} - extras.setdefault(name, set())
        extras[name] |= new_extras
        if name not in EXCLUDED:
            open_requirements += requirements(name, new_extras)
    return versions


def requirements(name: str, extras: set[str]) -> list[Requirement]:
    """The requirements of an installed package with any of these extras, for this Python and system."""
    every = map(Requirement, distribution(name).requires or ())
    return [each for each in every if any(each.marker is None or each.marker.evaluate({"extra": x}) for x in extras)]


def pack(name: str, folder: Path) -> None:
    """Make a wheel of an installed package, without its commands."""
    package = distribution(name)
    tags = [tag.split("-") for tag in re.findall(r"^Tag: (.*)$", package.read_text("WHEEL") or "", re.MULTILINE)]
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
    files = [file for file in package.files or () if ".." not in file.parts and file.suffix != ".pyc"]
    (record,) = (file for file in files if file.match("*.dist-info/RECORD"))
    stem = record.parent.name.removesuffix(".dist-info")
    with zipfile.ZipFile(folder / f"{stem}-{tag}.whl", "w") as wheel:
        for file in files:
            if file != record:
                wheel.write(str(file.locate()), str(file))
        wheel.writestr(str(record), "".join(f"{file},,\n" for file in files))


@pytest.fixture(scope="module", params=INSTALL)
def command(request: pytest.FixtureRequest, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `llmb-tui` of an installation that has the program and the packages that it requires."""
    home = tmp_path_factory.mktemp("home")
    (wheel,) = wheels.glob("llmb_tui-*.whl")
    tool, *words = (word.format(links=wheels) for word in INSTALL[request.param])
    install = [str(Path(sysconfig.get_path("scripts"), tool)), *words, "--python", sys.executable, str(wheel)]
    environment = {
        "HOME": str(home), "PATH": os.defpath, "PIP_CONFIG_FILE": os.devnull,
        "PIPX_BIN_DIR": str(home / "bin"), "UV_TOOL_BIN_DIR": str(home / "bin"),
    }  # fmt: skip
    done = subprocess.run(install, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return home / "bin/llmb-tui"


def environment_of(command: Path) -> Path:
    return command.resolve().parents[1]


def package_of(command: Path) -> Path:
    (folder,) = environment_of(command).glob("lib/python*/site-packages/llmb_tui")
    return folder


def output(command: Path, home: Path, *words: str) -> str:
    """The stdout of the installed program, started outside the checkout."""
    done = subprocess.run(
        [command, *words],
        cwd=home, env={"HOME": str(home), "LANG": "C.UTF-8"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_changelog_begins_with_the_unreleased_changes_and_this_version() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(llmb_tui.__version__)}\] - \d{{4}}-\d\d-\d\d", headings[1])


def test_every_file_of_the_package_is_installed(command: Path) -> None:
    def files(folder: Path) -> set[str]:
        return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}

    presets = {str(preset.relative_to(ROOT)) for preset in (ROOT / "presets").rglob("*") if preset.is_file()}
    assert {"presets/model/coefficients.toml", "presets/failures/training.toml"} <= presets
    assert files(package_of(command)) == files(ROOT / "llmb_tui") | presets


def test_it_runs_outside_the_checkout(command: Path, tmp_path: Path) -> None:
    assert output(command, tmp_path, "--version") == f"llmb-tui {llmb_tui.__version__}\n"
    assert re.search(r"^ +plan +show the plan", output(command, tmp_path, "--help"), re.MULTILINE)
    assert len(output(command, tmp_path, "list", "-w", "grok1").splitlines()) == 1 + 18
    row = ("-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
    assert "published" in output(command, tmp_path, "plan", *row)


@pytest.mark.parametrize("command", ["uv"], indirect=True)
def test_it_renders_the_golden_script_without_the_excluded_packages(command: Path, tmp_path: Path) -> None:
    spec = launch_spec(request_for(NEMOTRON, PROFILE), RUN_ID)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(f"{json.dumps(asdict(spec))}\n".encode())
        ours.shutdown(socket.SHUT_WR)
        done = subprocess.run(
            [environment_of(command) / "bin/python", "-m", "llmb_tui.launch.direct.render_worker"],
            stdin=theirs.fileno(), cwd=tmp_path, env={"HOME": str(tmp_path), "NEMORUN_HOME": str(tmp_path / "nemo")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        theirs.close()
        with ours.makefile() as answer:
            assert json.loads(answer.read())["script"] == GOLDEN.read_text()
