"""One intent, at most one job, and no job that is not known here: whatever is cut or killed, wherever.

Real sshd, real sbatch, real slurmctld. The truth is what Slurm has in its queue and its accounting at the end.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from tests.rig.waiting import wait_for
from tests.rig_submit.intents import Laptop
from tests.rig_submit.laptop import KilledLaptops
from tests.rig_submit.trial import Trial, places


def test_the_line_is_cut_at_any_place(trial: Trial) -> None:
    sizes = trial.submission_sizes()
    trial.submit_on_cut_lines((cut,) for cut in places(sizes, 11, 7))
    trial.settle()
    assert trial.tally.drops >= len(sizes) * 18
    assert set(trial.tally.ended) == {"submitted"}


def test_the_line_is_cut_again_and_again(trial: Trial) -> None:
    """From the start of the submission on, each call loses its line."""
    sizes = trial.submission_sizes()
    starts, looks = sizes[-2:-1], sizes[-1:]
    before = len(sizes) - 2
    schedules = itertools.product(places(starts, 7, 3), places(looks, 2, 2))
    trial.submit_on_cut_lines(
        [replace(first, call=before + 1), *(replace(then, call=before + n) for n in (2, 3))]
        for first, then in schedules
    )
    trial.settle()
    assert trial.tally.drops > trial.tally.submissions
    assert set(trial.tally.ended) == {"submitted"}


def test_the_line_is_cut_for_good(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program gives up, and asks when it is started again."""
    sizes = trial.submission_sizes()
    monkeypatch.setattr("llmb_tui.launch.direct_way.DirectWay.answers_within_s", 0.2)
    trial.submit_on_cut_lines((cut,) for cut in places(sizes, 9, 4, stays=True) if cut.call >= len(sizes) - 1)
    trial.settle()
    assert trial.tally.were_unknown > 0
    assert set(trial.tally.ended) <= {"submitted", "withdrawn"}


def test_the_laptop_dies_at_any_step(trial: Trial, tmp_path: Path) -> None:
    with contextlib.closing(KilledLaptops()) as laptops:

        def die(at: int, *, after: bool) -> int:
            run = trial.new()
            text = trial.intents.script(run)
            steps, code = laptops.submit(tmp_path, run, text, trial.intents.profile(), dies_at=at, after=after)
            assert code == (-9 if at else 0)
            return steps

        steps = die(0, after=False)
        for at, after in itertools.product(range(1, steps + 1), (False, True)):
            die(at, after=after)
            trial.tally.drops += 1
    trial.settle()
    assert set(trial.tally.ended) == {"intended", "submitted", "withdrawn"}


# As soon as the submission has begun, and the pause is over, its processes are killed: all, or only submit.sh.
KILL = """
while [ ! -h "$1" ]; do sleep 0.001; done
sleep "$2"
claim=$(readlink "$1")
group=${claim#* }
kill -9 "$3${group%% *}"
"""


ONLY_SUBMIT_SH, WITH_SBATCH = "", "-"


def test_the_submission_is_killed_on_the_login_node(trial: Trial) -> None:
    """A little later each time, from its beginning to its end."""
    for number, whom in itertools.product(range(18), (ONLY_SUBMIT_SH, WITH_SBATCH)):
        run = trial.new()
        command = ["sh", "-c", KILL, "sh", str(trial.traces(run) / "claim"), str(number / 1000), whom]
        killer = threading.Thread(target=trial.rig.as_root, args=(command,))
        killer.start()
        with trial.session() as session, contextlib.suppress(Trouble):
            trial.submit(session, run)
        killer.join()
        trial.tally.drops += 1
    trial.settle()
    assert trial.tally.ended["submitted"] > 0


def test_the_ssh_session_is_killed_on_the_login_node(trial: Trial) -> None:
    """A little later each time, from logging in to the answer."""
    for number in range(25):
        run = trial.new()
        killer = threading.Timer(number * 0.015, trial.rig.servers.end_sessions, ["login"])
        killer.start()
        with trial.session() as session, contextlib.suppress(Trouble):
            trial.submit(session, run)
        killer.join()
        trial.tally.drops += 1
        if trial.remembered(run).submission == "intended":
            with trial.session() as session:
                trial.submit(session, run)
    trial.settle()
    assert set(trial.tally.ended) == {"submitted"}


def test_two_laptops_submit_the_same_run(trial: Trial, tmp_path: Path) -> None:
    other = Laptop(tmp_path / "other")
    for _ in range(10):
        run = trial.new()
        with trial.session() as here, trial.session() as there:
            thread = threading.Thread(target=trial.submit, args=(there, run), kwargs={"laptop": other})
            thread.start()
            trial.submit(here, run)
            thread.join()
        assert other.runs.load(run.id).job_ids == trial.remembered(run).job_ids
    trial.settle()
    assert set(trial.tally.ended) == {"submitted"}


def test_one_laptop_asks_while_another_submits(trial: Trial, tmp_path: Path) -> None:
    """Whoever comes first decides, and both know."""
    other = Laptop(tmp_path / "other")
    for number in range(20):
        run = trial.new()
        other.runs.save(replace(run, submission="unknown"))
        with trial.session() as here, trial.session() as there:
            there.connect()
            thread = threading.Thread(target=_submit_or_not, args=(trial, here, run))
            thread.start()
            wait_for("the submission is being prepared", trial.traces(run).exists)
            threading.Event().wait(number * 0.01)
            asked = trial.reconcile(there, run, laptop=other)
            thread.join()
            if asked.submission == "unknown":
                asked = trial.reconcile(there, run, laptop=other)
        known = trial.remembered(run)
        assert (asked.submission, asked.job_ids) == (known.submission, known.job_ids)
    trial.settle()


def _submit_or_not(trial: Trial, session: Session, run: Run) -> None:
    with contextlib.suppress(Trouble):
        trial.submit(session, run)


def test_two_processes_submit_the_same_run(trial: Trial, tmp_path: Path) -> None:
    with contextlib.closing(KilledLaptops()) as laptops, trial.session() as session:
        for _ in range(5):
            run = trial.new()
            elsewhere = (tmp_path, run, trial.intents.script(run), trial.intents.profile())
            thread = threading.Thread(target=laptops.submit, args=elsewhere)
            thread.start()
            trial.submit(session, run)
            thread.join()
    trial.settle()
    assert set(trial.tally.ended) == {"submitted"}
