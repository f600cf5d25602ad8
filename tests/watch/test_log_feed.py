"""The feed of a job's logs: when it advances to the next log, and when a log is complete. The cluster is simulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.remote_file import Proof, Sample, cksum
from llmb_tui.cluster.runai.failures import ApiError
from llmb_tui.cluster.runai.kube import KubeconfigError
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import LinkState
from llmb_tui.watch import follow, logfeed
from llmb_tui.watch.events import BatchTail, Ended, LinkChanged, LogGrown, LogProblem, WatchEvent
from llmb_tui.watch.logfeed import LogFeed
from tests.kit.waiting import until

DEADLINE_S = 30.0
FIRST = b"a line of the first start\n" * 400
SECOND = b"a line of the second start\n"


@dataclass
class Log:
    """A log on the cluster; each read of its tail returns a few bytes, as over a slow connection."""

    data: bytes | None = None
    """None: the log does not exist."""
    at_once: int = 1000
    path: str = "/cluster/log"
    changed: bool = False
    fills_gap: bool = False
    proof: Proof | None = None
    error: LlmbError | None = None
    """Error that each read of the log raises."""
    read_to: int = 0
    comes: threading.Event = field(default_factory=threading.Event)
    """Event that is never set: no more data arrives."""

    def prove(self, sample: Sample, known: bytes) -> Proof | None:  # noqa: ARG002 - signature of `RemoteFile`
        if self.error is not None:
            raise self.error
        if self.data is None:
            return None
        sampled = self.data[: sample.head] + self.data[sample.start : sample.start + sample.length]
        return Proof("1", len(self.data), cksum(sampled))

    def tail(self, sample: Sample, offset: int, known: bytes) -> Log:
        self.proof, self.read_to = self.prove(sample, known), offset
        return self

    def read(self, timeout_s: float) -> bytes | None:
        data = (self.data or b"")[self.read_to : self.read_to + self.at_once]
        self.read_to += len(data)
        if not data:
            self.comes.wait(timeout_s)
        return data or None

    def close(self) -> None: ...


@dataclass
class Output:
    """Output of the job: one log for each start."""

    logs: dict[int, Log]
    one_for_all: bool = False
    may_come_back: bool = True

    def starts(self) -> list[int]:
        return sorted(restart for restart, log in self.logs.items() if log.data is not None)

    def log(self, restart: int) -> Log:
        return self.logs[restart]

    def other_output(self, most: int) -> bytes:
        return b"what the batch script wrote"[:most]


class Feed:
    """Feed of a job with this output, and the events of the feed."""

    def __init__(self, output: Output, folder: Path, patience_s: float = 3600.0) -> None:
        self.news: list[WatchEvent] = []
        self.folder = folder
        self.stop = threading.Event()
        self.feed = LogFeed(
            output, folder, state=lambda: "live", post=self.news.append, stop=self.stop, patience_s=patience_s
        )

    def copy(self, name: str) -> bytes | None:
        """Copied bytes; None if the copy does not exist."""
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    def end(self) -> None:
        """Wait until the feed ends without a request to stop."""
        self.feed.join(DEADLINE_S)
        assert not self.feed.is_alive(), self.news
        assert self.news[-1] == Ended("watch-log")

    @property
    def troubles(self) -> list[LogProblem]:
        """Reasons why the log could not be copied."""
        return [news for news in self.news if isinstance(news, LogProblem)]

    @property
    def is_whole(self) -> bool:
        """Whether the feed reported a complete copy."""
        return any(isinstance(news, BatchTail) for news in self.news)


@pytest.fixture
def started() -> Iterator[list[Feed]]:
    """Feeds that the test adds; they are stopped at its end."""
    feeds: list[Feed] = []
    yield feeds
    for feed in feeds:
        feed.stop.set()
        if feed.feed.ident is not None:
            feed.feed.join(DEADLINE_S)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("BETWEEN_PROOFS_S", "AFTER_ERROR_S", "PUMP_S"):
        monkeypatch.setattr(logfeed, pause, 0.001)
    for pause in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(follow, pause, 0.001)


@pytest.fixture
def two_starts(tmp_path: Path, started: list[Feed]) -> Feed:
    """Feed of a job that restarted before the first log was copied."""
    started.append(Feed(Output({0: Log(FIRST), 1: Log(SECOND)}), tmp_path / "run"))
    return started[-1]


def test_a_slow_log_is_copied_completely_before_the_next_log(two_starts: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfeed, "CATCH_UP_S", -1.0)  # the limit is over before the copy is complete
    two_starts.feed.job_moved(1, over=True)
    two_starts.feed.start()
    two_starts.end()
    assert (two_starts.copy("log"), two_starts.copy("log.1")) == (FIRST, SECOND)
    assert two_starts.is_whole


def test_a_query_continues_with_a_log_that_was_incomplete(two_starts: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as slow:
        slow.setattr(logfeed, "CATCH_UP_S", -1.0)
        two_starts.feed.catch_up(job_over=True)
    assert two_starts.copy("log.1") is None
    assert not two_starts.is_whole
    two_starts.feed.catch_up(job_over=True)
    assert (two_starts.copy("log"), two_starts.copy("log.1")) == (FIRST, SECOND)
    assert two_starts.is_whole


StartFeed = Callable[..., Feed]


@pytest.fixture
def ended_job(tmp_path: Path, started: list[Feed]) -> StartFeed:
    """Function that starts the feed of a finished job; `copied` is the local copy at the start."""

    def start(log: Log, *, copied: bytes = b"", patience_s: float = 3600.0, may_come_back: bool = True) -> Feed:
        started.append(Feed(Output({0: log}, may_come_back=may_come_back), tmp_path / "run", patience_s))
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "log").write_bytes(copied)
        started[-1].feed.job_moved(0, over=True)
        started[-1].feed.start()
        return started[-1]

    return start


def test_a_log_that_is_missing_when_its_job_ends_is_not_complete(ended_job: StartFeed) -> None:
    feed = ended_job(Log(None), copied=FIRST[:1000], patience_s=0.0)
    feed.end()
    assert not feed.is_whole
    assert feed.copy("log") == FIRST[:1000]
    assert [error.given_up for error in feed.troubles] == [True]
    assert "is gone" in feed.troubles[0].note


REFUSED = ApiError(403, "Kubernetes refused to read the log.", "HTTP 403.", "Ask its administrators.")
NO_LOGIN = KubeconfigError(Path("config"), "The program aws gave no login: expired.")
FULL = LlmbError("The log's copy cannot be written.", "No space left on device.", "Free space on this machine.")
CUT = DisconnectedError("The connection broke.")


@pytest.mark.parametrize("error", [REFUSED, NO_LOGIN], ids=["refused", "kubeconfig"])
def test_a_log_that_is_refused_after_the_end_of_its_job_is_read_later(ended_job: StartFeed, error: LlmbError) -> None:
    feed = ended_job(Log(FIRST, error=error), copied=FIRST[:1000], patience_s=0.0)
    feed.end()
    assert not feed.is_whole
    assert [one.given_up for one in feed.troubles] == [True]
    assert feed.troubles[0].note.startswith(error.what)


@pytest.mark.parametrize("error", [REFUSED, NO_LOGIN, FULL, CUT], ids=["refused", "kubeconfig", "full", "cut"])
def test_trouble_that_passes_within_the_patience_leaves_no_gap(ended_job: StartFeed, error: LlmbError) -> None:
    patience_s = 3600.0 if error in (REFUSED, NO_LOGIN) else 0.0  # the feed always waits for a full disk or a lost link
    log = Log(FIRST, error=error)
    feed = ended_job(log, copied=FIRST[:1000], patience_s=patience_s)
    until(lambda: len(feed.troubles) >= 3 or any(isinstance(one, LinkChanged) for one in feed.news), "it is waited for")
    log.error = None
    feed.end()
    assert feed.copy("log") == FIRST
    assert feed.is_whole


def test_a_log_that_reappears_after_the_end_of_its_job_is_copied_whole(ended_job: StartFeed) -> None:
    log = Log(None)
    feed = ended_job(log, copied=FIRST[:1000])
    until(lambda: len(feed.troubles) >= 3, "it is waited for")
    log.data = FIRST
    feed.end()
    assert feed.copy("log") == FIRST
    assert feed.is_whole


def test_a_log_that_is_gone_for_good_is_not_waited_for(ended_job: StartFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LONGEST_PAUSE_S", 0.5)  # longer than AFTER_ERROR_S, as in the program
    feed = ended_job(Log(None), copied=FIRST[:1000], may_come_back=False)
    feed.end()
    assert feed.copy("log") == FIRST[:1000]
    assert feed.is_whole


def test_a_job_that_wrote_no_log_has_an_end(ended_job: StartFeed) -> None:
    feed = ended_job(Log(None))
    feed.end()
    assert feed.is_whole
    assert not feed.troubles


def test_a_removed_log_does_not_delay_a_later_log(tmp_path: Path, started: list[Feed]) -> None:
    output = Output({0: Log(FIRST), 1: Log(None)})
    started.append(feed := Feed(output, tmp_path / "run"))
    feed.feed.catch_up(job_over=False)
    output.logs[0].data, output.logs[1].data = None, SECOND
    feed.feed.job_moved(1, over=True)
    feed.feed.start()
    feed.end()
    assert (feed.copy("log"), feed.copy("log.1")) == (FIRST, SECOND)
    notes = [news.note for news in feed.news if isinstance(news, LogGrown) and news.note]
    assert notes == [f"The log of an earlier start was removed on the cluster; {len(FIRST):,} bytes are copied."]
    assert feed.is_whole


@pytest.mark.parametrize(("state", "grows"), [("live", True), ("lost", False)])
def test_pauses_grow_if_each_read_is_cut_although_the_cluster_answers(
    tmp_path: Path, state: LinkState, grows: bool
) -> None:
    """If the cluster does not answer, the cluster object itself increases the pauses between its attempts."""
    pauses: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            if len(pauses) == 10:
                self.set()
            return self.is_set()

    output, stop = Output({0: Log(FIRST, error=CUT)}), Stop()
    LogFeed(output, tmp_path / "run", state=lambda: state, post=lambda _: None, stop=stop).run()
    assert pauses == sorted(pauses)
    assert (pauses[-1] > 10 * pauses[0]) is grows
    assert pauses[-1] <= 10.0
