"""A `LogFeed` on a log of the rig, with the news that it reports."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.watch.events import LinkChanged, LogGrown, LogProblem, WatchEvent
from llmb_tui.watch.logfeed import LogFeed
from tests.kit.runs import make_spec
from tests.kit.waiting import until
from tests.rig.cluster import Rig

JOB = "42"
REPOSITORY = Path(__file__).parents[3]
WRITER = Path(__file__).with_name("log_writer.py")

# Code of a separate process that follows a log as the program does.
_PROGRAM = """
from pathlib import Path
from llmb_tui.cluster.slurm.profile import SlurmProfile
from tests.rig.stream.following import Following
Following({profile!r}, Path({task_dir!r}), Path({folder!r})).feed.join()
"""


def log_in(task_dir: Path, restart: int = 0) -> Path:
    """Path of a job's log, which is the same on the cluster and here."""
    return Path(make_spec(task_dir=task_dir).log.path(JOB, restart))


def written_by_operator(rig: Rig, path: Path, data: bytes = b"") -> Path:
    """Create a file as the operator, with these bytes."""
    rig.as_operator(["sh", "-c", 'umask 022; cat > "$1"', "sh", str(path)], check=True)
    path.write_bytes(data)
    return path


def start_writer(rig: Rig, path: Path, seed: int, seconds: float) -> subprocess.Popen[bytes]:
    """Start a writer of a log on the login node. The rig starts it, not SSH."""
    argv = ["python3", "-c", WRITER.read_text(), str(path), str(seed), str(seconds)]
    return rig.machine.popen(argv, output=sys.stderr.fileno())


@contextmanager
def followed_in_a_process(profile: SlurmProfile, task_dir: Path, folder: Path) -> Iterator[None]:
    """Follow the log in another process within the block; the process is killed at the end."""
    code = _PROGRAM.format(profile=profile, task_dir=str(task_dir), folder=str(folder))
    program = subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY)
    try:
        yield
    finally:
        program.kill()
        program.wait()


class Following:
    """The feed in its thread; call `end` at the end."""

    def __init__(self, profile: SlurmProfile, task_dir: Path, folder: Path) -> None:
        self.news: list[WatchEvent] = []
        self.folder = folder
        self.session = SlurmCluster(profile)
        self._stop = threading.Event()
        log = make_spec(task_dir=task_dir).log
        output = self.session.output(log, JOB)
        self.feed = LogFeed(output, folder, state=lambda: self.session.state, post=self.news.append, stop=self._stop)
        self.feed.start()

    @property
    def links(self) -> list[LinkChanged]:
        """Reported states of the link."""
        return [news for news in self.news if isinstance(news, LinkChanged)]

    @property
    def troubles(self) -> list[str]:
        """Reported problems of the log."""
        return [news.note for news in self.news if isinstance(news, (LogGrown, LogProblem)) and news.note]

    def wait_until_copied(self, remote: Path, deadline_s: float = 60.0) -> None:
        """Wait until the newest copy is as long as the file, which must not grow any more."""
        copy = self.folder / "log"
        size = remote.stat().st_size
        try:
            until(lambda: copy.exists() and copy.stat().st_size >= size, "the copy is complete", deadline_s=deadline_s)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; it said {self.news}") from None

    def end(self) -> None:
        """Quit, as the program does."""
        self._stop.set()
        self.session.close()
        self.feed.join(30)
        assert not self.feed.is_alive()
