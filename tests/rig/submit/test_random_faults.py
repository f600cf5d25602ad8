"""Submissions whose line is cut, hangs or is closed by the server, at random bytes and at random times.

The other tests cut between the steps of the protocol; real faults do not follow the protocol. `make campaign` makes
many more submissions than `make test`.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.errors import LlmbError
from tests.rig.campaign import TIMES, seed
from tests.rig.line import Line
from tests.rig.submit.trial import AT_ONCE, Trial

LASTS_S = {"direct": 0.8, "batch": 2.5}
"""Typical duration of a submission in seconds: faults come before, within and after it."""


def strike(trial: Trial, line: Line, chance: random.Random) -> None:
    """Cause a random fault."""
    kind = chance.randrange(6)
    if kind == 0:
        line.cut_after(bytes_up=chance.randrange(1, 12_000))
    elif kind == 1:
        line.cut_after(bytes_down=chance.randrange(1, 6_000))
    elif kind == 2:
        line.hang()
        threading.Event().wait(chance.uniform(0.05, 0.5))  # data in flight waits
        line.cut()
        line.resume()
    elif kind == 3:
        trial.tally.drops += bool(trial.rig.servers.sessions("login"))
        trial.rig.servers.end_sessions("login")  # also ends concurrent submissions
    elif kind == 4:
        line.refuse()
        line.cut()
    else:
        line.cut()


@contextlib.contextmanager
def troubled(trial: Trial, line: Line, chance: random.Random, lasts_s: float) -> Iterator[None]:
    """Cause one or two faults at random times within the block."""
    done = threading.Event()

    def work() -> None:
        for _ in range(chance.randint(1, 2)):
            if done.wait(chance.uniform(0, lasts_s)):
                return
            strike(trial, line, chance)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        line.cut_after()
        line.accept()


@pytest.mark.parametrize(("trial", "count"), [("direct", 12 * TIMES), ("batch", 4 * TIMES)], indirect=["trial"])
def test_each_run_has_at_most_one_job_whose_number_is_known(
    trial: Trial, count: int, request: pytest.FixtureRequest, print_at_end: Callable[[str], None]
) -> None:
    first = seed(print_at_end)
    lasts_s = LASTS_S[request.node.callspec.params["trial"]]

    def worker(number: int) -> int:
        chance = random.Random(first + number)
        with Line(trial.rig.port()) as line:
            for _ in range(number, count, AT_ONCE):
                run = trial.new()
                with contextlib.closing(SlurmCluster(line.profile(trial.intents.profile()))) as session:
                    with troubled(trial, line, chance, lasts_s), contextlib.suppress(LlmbError):
                        trial.submit(session, run)
                    if chance.random() < 0.5:  # retry at once over the same line, as an impatient user does
                        with contextlib.suppress(LlmbError):
                            trial.submit(session, run)
            return line.cuts

    with ThreadPoolExecutor(AT_ONCE) as pool:
        trial.tally.drops += sum(pool.map(worker, range(AT_ONCE)))
    trial.settle()
    assert trial.tally.submissions == count
    assert set(trial.tally.ended) <= {"intended", "submitted", "withdrawn"}
