"""At most one job by our script: its submission killed on the login node, cut repeatedly, in two processes.

`test_at_most_once` has the tests for every launch method.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import replace
from pathlib import Path

from llmb_tui.errors import LlmbError
from tests.rig.campaign import TIMES
from tests.rig.submit.laptop import KilledLaptops
from tests.rig.submit.trial import Trial, places


def test_the_line_is_cut_again_and_again(trial: Trial) -> None:
    """Each call loses its line, from the start of the submission on."""
    sizes = trial.submission_sizes()
    starts, looks = sizes[-2:-1], sizes[-1:]
    before = len(sizes) - 2
    schedules = itertools.product(places(starts, 3 * TIMES, 2 * TIMES), places(looks, TIMES, TIMES))
    trial.submit_on_cut_lines(
        [replace(start, call=before + 1), *(replace(look, call=before + n) for n in (2, 3))]
        for start, look in schedules
    )
    trial.settle()
    assert trial.tally.drops > trial.tally.submissions
    assert set(trial.tally.ended) == {"submitted"}


# Kills the processes of a submission after a pause from its start: all, or only submit.sh. A single process does it,
# and looks every millisecond.
KILL = """
my ($claim, $pause, $whom) = @ARGV;
select(undef, undef, undef, 0.001) until -l $claim;
select(undef, undef, undef, $pause);
kill "KILL", $whom . (split " ", readlink $claim)[1];
"""
ONLY_SUBMIT_SH, WITH_SBATCH = "", "-"


def test_the_submission_is_killed_on_the_login_node(trial: Trial) -> None:
    """Each attempt kills a little later, from the start of the submission to its end."""
    for number, whom in itertools.product(range(9 * TIMES), (ONLY_SUBMIT_SH, WITH_SBATCH)):
        run = trial.new()
        command = ["perl", "-e", KILL, str(trial.traces(run) / "claim"), str(number / TIMES / 500), whom]
        killer = threading.Thread(target=trial.rig.as_root, args=(command,))
        killer.start()
        with trial.session() as session, contextlib.suppress(LlmbError):
            trial.submit(session, run)
        killer.join()
        trial.tally.drops += 1
    trial.settle()
    assert trial.tally.ended["submitted"] > 0


def test_the_ssh_session_is_killed_on_the_login_node(trial: Trial) -> None:
    """Each attempt kills a little later, from the login to the answer."""
    for number in range(12 * TIMES):
        run = trial.new()
        killer = threading.Timer(number / TIMES * 0.03, trial.rig.servers.end_sessions, ["login"])
        killer.start()
        with trial.session() as session, contextlib.suppress(LlmbError):
            trial.submit(session, run)
        killer.join()
        trial.tally.drops += 1
        if trial.remembered(run).submission == "intended":
            with trial.session() as session:
                trial.submit(session, run)
    trial.settle()
    assert set(trial.tally.ended) == {"submitted"}


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
