"""An install step as the cluster runs it, from its start to its end, with a Slurm of a few lines."""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.launch.install import _step_script
from llmb_tui.launch.install_step import InstallStep, StepJob
from llmb_tui.launch.step_state import explain

# Like a setup script: it first removes the result of an earlier one.
WORK = """
rm -rf "$1"
echo "${SLURM_JOB_ID-here}" >>"$1.calls"
[ ! -e "$1.broken" ] || exit 3
mkdir "$1"
"""
SQUEUE = 'ls "$HOME/queue"'
# A slow controller: it answers only after both requests have arrived.
SBATCH = """
number=$(mktemp "$HOME/asked.XXXXXX")
while [ "$(ls "$HOME"/asked.* | wc -l)" -lt "$(cat "$HOME/wanted")" ]; do sleep 0.02; done
number=$(ls "$HOME"/asked.* | grep -n -x "$number" | cut -d : -f 1)
touch "$HOME/queue/10$number"
echo "10$number"
"""


class Place:
    """A folder with one step, and this machine as its login node."""

    def __init__(self, folder: Path, shell: list[str]) -> None:
        self.shell, self.home = shell, folder
        self.made = folder / "made"
        self.folder = folder / ".llmb-tui" / "steps" / "setup"
        self.script = folder / "step.sh"
        self.folder.mkdir(parents=True)
        (folder / "queue").mkdir()
        (folder / "bin").mkdir()
        self.write(InstallStep("setup", "Set up", (str(self.made),), WORK, (str(self.made),), in_job=StepJob("", ())))
        self.program("squeue", SQUEUE)
        self.program("sbatch", SBATCH)

    def write(self, step: InstallStep, umask: str = "go-w") -> None:
        self.script.write_text(_step_script(umask, str(self.home), replace(step, id="setup")))

    def program(self, name: str, body: str) -> None:
        path = self.home / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def begin(self, script: str, *words: str, stdin: IO[str] | None = None, **variables: str) -> subprocess.Popen[str]:
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.home), **variables}
        argv = [*self.shell, "-c", script, "sh", *words]
        return subprocess.Popen(argv, env=environment, cwd=self.folder, stdin=stdin, stdout=subprocess.PIPE, text=True)

    def run(self, script: str, *words: str, **variables: str) -> str:
        process = self.begin(script, *words, stdin=None, **variables)
        text, _ = process.communicate(timeout=30)
        return text

    def start(self) -> subprocess.Popen[str]:
        """Run the step as a job."""
        script = remote_text("lock.sh", "inside.sh", "sbatch.sh", "start.sh")
        words = (str(self.home), "setup", str(self.script.stat().st_size), "llmb-tui-setup", "")
        with self.script.open() as text:
            return self.begin(script, *words, stdin=text)

    def job(self, number: str) -> None:
        """Start a job, as if its turn in the queue had come."""
        self.run(f". {self.script}", SLURM_JOB_ID=number)
        (self.home / "queue" / number).unlink(missing_ok=True)

    def look(self, *results: Path | str) -> str:
        """State of the step, in one word."""
        call = shell_join(["look", "ask", str(self.folder), "llmb-tui-setup", "", *map(str, results or (self.made,))])
        return self.run(f"{remote_text('lock.sh', 'there.sh', 'look.sh')}\n{call}").split()[1]

    def calls(self) -> list[str]:
        path = Path(f"{self.made}.calls")
        return path.read_text().split() if path.exists() else []


@pytest.fixture(params=["sh", "bash --posix"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, request.param.split())


def test_a_user_of_a_windows_domain_can_install(place: Place) -> None:
    """The echo of some shells interprets a backslash, with which winbind separates domain and name."""
    place.program("id", r"printf '%s\n' 'CORP\carol'")
    place.run(f". {place.script}")
    assert place.calls() == ["here"]
    assert place.look() == "done"
    assert "started by CORP\\carol@" in (place.folder / "log").read_text()


def queued_twice(place: Place) -> None:
    (place.home / "wanted").write_text("2")
    both = [place.start(), place.start()]
    assert [process.wait(timeout=30) for process in both] == [0, 0]
    assert sorted(os.listdir(place.home / "queue")) == ["101", "102"]


def test_a_step_that_was_queued_twice_is_done_once(place: Place) -> None:
    """Two laptops read the queue before either job was in it; the second job would remove the result of the first."""
    queued_twice(place)
    place.job("101")
    (place.made / "of a later step").touch()
    log = (place.folder / "log").read_text()
    place.job("102")
    assert place.calls() == ["101"]
    assert (place.made / "of a later step").exists()
    assert place.look() == "done"
    assert sorted(os.listdir(place.folder)) == ["ended.0", "log"]
    assert (place.folder / "log").read_text() == log


@pytest.mark.parametrize("greeting", ["", "Welcome to Eos, 2 projects.\n\n", "\n"])
def test_the_job_number_is_read_after_any_text_printed_by_sbatch(place: Place, greeting: str) -> None:
    place.program("sbatch", f"printf '%s103;eos\\n' {shell_join([greeting])}")
    assert place.start().wait(timeout=30) == 0
    assert (place.folder / "job").read_text() == "103\n"


@pytest.mark.parametrize("warning", ["", "bash: warning: setlocale: LC_ALL: cannot change locale (C.utf8)"])
def test_a_job_that_died_is_gone_whatever_squeue_warns_of(place: Place, warning: str) -> None:
    place.program("squeue", f"echo '{warning}' >&2\n{SQUEUE}")
    queued_twice(place)
    (place.folder / "job").write_text("101\n")
    assert place.look() == "waiting"
    (place.home / "queue" / "101").unlink()
    (place.home / "queue" / "102").unlink()
    assert place.look() == "gone"


def test_the_second_of_two_jobs_completes_the_work_of_the_first(place: Place) -> None:
    queued_twice(place)
    Path(f"{place.made}.broken").touch()
    place.job("101")
    assert place.look() == "failed"
    Path(f"{place.made}.broken").unlink()
    place.job("102")
    assert place.calls() == ["101", "102"]
    assert place.look() == "done"


# An image exists once it is complete.

IMAGE = remote_text("there.sh", "import_image.sh") + 'import_image "$@"'


class Image:
    """The step of an image, and the image's source."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.path, self.brought = (place.home / folder / "nemo.sqsh" for folder in ("images", "offline"))
        for path in (self.path, self.brought):
            path.parent.mkdir()
        args = (str(self.path), "docker://nemo", ".credentials", "x86_64", str(self.brought))
        self.step = InstallStep("image", "Image", (str(self.path),), IMAGE, args)

    def install(self, umask: str = "go-w") -> str:
        self.place.write(self.step, umask)
        self.place.run(f". {self.place.script}")
        return (self.place.folder / "log").read_text()

    def look(self) -> str:
        return self.place.look(self.path)

    def needed(self) -> int:
        """Exit code of a submission that needs the image: 0, or 3 if it is missing."""
        script = remote_text("there.sh", "inside.sh", "prepare.sh")
        process = self.place.begin(
            script, str(self.place.home), f"{self.place.home}/run", "", "1", str(self.path), "0", "0"
        )
        return process.wait(timeout=30)


@pytest.fixture
def image(place: Place) -> Image:
    return Image(place)


def squashfs(size: int) -> bytes:
    """Header of an image: magic number, version, and size in bytes."""
    return struct.pack("<4s24xHHQQ", b"hsqs", 4, 0, 0, size).ljust(96, b"\0")


CONTENTS = {
    "padded": (squashfs(5000).ljust(8192, b"x"), True),
    "to the byte": (squashfs(5000).ljust(5000, b"x"), True),
    "magic number alone": (b"hsqs", True),
    "simulated": (b"hsqs, simulated: the demo starts no container, and this is no image at all", True),
    "begun by mksquashfs": (bytes(8192), False),
    "cut": (squashfs(5000).ljust(4999, b"x"), False),
    "of 20 GB": (squashfs(5 << 32).ljust(8192, b"x"), False),
    "cut in its beginning": (squashfs(5000)[:44], False),
    "two bytes": (b"hs", False),
    "empty": (b"", False),
}


@pytest.mark.parametrize(("content", "whole"), CONTENTS.values(), ids=CONTENTS)
def test_an_image_is_there_once_it_is_whole(image: Image, content: bytes, whole: bool) -> None:
    image.path.write_bytes(content)
    assert (image.look() == "done") is whole
    assert image.needed() == (0 if whole else 3)


def test_an_image_that_is_being_written_is_left_alone_and_reported(image: Image) -> None:
    image.path.write_bytes(bytes(100))
    failure = explain(image.install().splitlines())
    assert failure.line == f"{image.path} is there, but is no image."
    assert "may still be writing it" in failure.reason
    assert image.look() == "failed"
    assert image.path.read_bytes() == bytes(100)
    image.path.write_bytes(squashfs(96))
    assert image.look() == "done"


@pytest.mark.parametrize("content", [bytes(100), squashfs(5000)], ids=["no image", "cut"])
def test_an_image_that_is_still_being_brought_is_not_taken(image: Image, content: bytes) -> None:
    image.brought.write_bytes(content)
    failure = explain(image.install().splitlines())
    assert failure.line == f"{image.brought} is not whole."
    assert "is incomplete" in failure.reason
    assert not image.path.exists()
    image.brought.write_bytes(squashfs(96))
    image.install()
    assert image.path.read_bytes() == squashfs(96)


def test_an_image_from_enroot_is_checked_before_use(image: Image) -> None:
    image.place.program("enroot", 'echo cut >"$3"')
    assert "enroot made no image." in image.install()
    assert list(image.path.parent.iterdir()) == []
    image.place.program("enroot", 'echo hsqs, imported >"$3"')
    image.install()
    assert image.look() == "done"


@pytest.mark.parametrize(("umask", "mode"), [("go-w", 0), ("g=rwx,o-w", 0o020)])
def test_layers_of_a_broken_import_have_the_groups_permissions(image: Image, umask: str, mode: int) -> None:
    """Another user of the shared install continues the import."""
    image.place.program("enroot", 'echo layer >"$ENROOT_CACHE_PATH/layer"; exit 1')
    image.install(umask)
    assert (image.place.folder / "cache").stat().st_mode & 0o022 == mode
    assert (image.place.folder / "cache/layer").exists()
