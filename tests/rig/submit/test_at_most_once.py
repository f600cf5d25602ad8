"""One intent leads to at most one job, and every job is known to the program, whatever is cut or killed at any moment.

Real sshd, real sbatch, real slurmctld. The truth is Slurm's queue and accounting at the end, and the record of the
launch that called sbatch. The first tests cover every launch method; the later ones cover NVIDIA's scripts, with two
recipes: one with NeMo-Run, really installed, and one that is itself a batch script.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.delivery import DirectDelivery
from llmb_tui.launch.upstream.delivery import UpstreamDelivery
from tests.kit.waiting import until
from tests.rig.campaign import TIMES
from tests.rig.submit.intents import Laptop
from tests.rig.submit.laptop import KilledLaptops
from tests.rig.submit.trial import Trial, places
from tests.rig.submit.upstream_intents import ONLY_LAUNCH_SH, WITH_ALL, LaunchHold, folder_of, group_of, kill, spec_of


def by_each(names: str, *cases: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Parametrise a test with our script, with a batch script of NVIDIA, and with NeMo-Run, as far as cases are given.

    Launches by NVIDIA's scripts take longer, so fewer of them are interrupted.
    """
    return pytest.mark.parametrize(
        ("trial", *names.split()), cases, indirect=["trial"], ids=[case[0] for case in cases]
    )


def launch_killed(trial: Trial, moment: str, whom: str) -> None:
    """Launch a new run, and kill its launch at the moment at which it is held."""
    run = trial.new()
    with LaunchHold(trial.rig, moment) as hold:
        thread = trial.submit_in_background(run)
        hold.wait()
        kill(trial, run, whom)
    thread.join()


@by_each("up down", ("direct", 3, 2), ("batch", 1, 1))
def test_the_line_is_cut_at_any_place(trial: Trial, up: int, down: int) -> None:
    sizes = trial.submission_sizes()
    trial.submit_on_cut_lines((cut,) for cut in places(sizes, up * TIMES, down * TIMES))
    trial.settle()
    assert trial.tally.drops >= len(sizes) * (up + down) * TIMES
    assert set(trial.tally.ended) == {"submitted"}


@by_each("up down", ("direct", 3, 2), ("batch", 2, 1))
def test_the_line_is_cut_for_good(trial: Trial, up: int, down: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program gives up, and asks the cluster at its next start."""
    sizes = trial.submission_sizes()
    for delivery in (DirectDelivery, UpstreamDelivery):
        monkeypatch.setattr(delivery, "answers_within_s", 0.2)
    cuts = places(sizes, up * TIMES, down * TIMES, stays=True)
    trial.submit_on_cut_lines((cut,) for cut in cuts if cut.call >= len(sizes) - 1)
    trial.settle()
    assert trial.tally.were_unknown > 0
    assert set(trial.tally.ended) <= {"submitted", "withdrawn"}


@by_each("", ("direct",), ("batch",))
def test_the_laptop_dies_at_any_step(trial: Trial, tmp_path: Path) -> None:
    with contextlib.closing(KilledLaptops()) as laptops:

        def die(step: int, *, after: bool) -> int:
            run = trial.new()
            text = trial.intents.script(run)
            steps, code = laptops.submit(tmp_path, run, text, trial.intents.profile(), dies_at=step, after=after)
            assert code == (-9 if 0 < step <= steps else 0)  # a run with fewer looks ends before that step
            return steps

        steps = die(0, after=False)
        for number, after in itertools.product(range(1, steps + 1), (False, True)):
            die(number, after=after)
            trial.tally.drops += 1
    trial.settle()
    assert set(trial.tally.ended) == {"intended", "submitted", "withdrawn"}


@by_each("times", ("direct", 6), ("batch", 2), ("nemo_run", 1))
def test_two_laptops_submit_the_same_run(trial: Trial, times: int, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "other")
    for _ in range(times * TIMES):
        run = trial.new()
        with trial.session() as first_session, trial.session() as second_session:
            thread = threading.Thread(target=trial.submit, args=(second_session, run), kwargs={"laptop": laptop})
            thread.start()
            trial.submit(first_session, run)
            thread.join()
        assert laptop.runs.load(run.id).job_ids == trial.remembered(run).job_ids
    trial.settle()
    assert set(trial.tally.ended) == {"submitted"}


@by_each("times pause_s", ("direct", 12, 0.05), ("batch", 6, 0.13))
def test_one_laptop_reconciles_while_another_submits(trial: Trial, times: int, pause_s: float, tmp_path: Path) -> None:
    """The first to arrive decides, and both know the result. Each attempt asks a little later."""
    laptop = Laptop(tmp_path / "other")
    for number in range(times):
        run = trial.new()
        laptop.runs.save(replace(run, submission="unknown"))
        with trial.session() as session:
            session.connect()
            thread = trial.submit_in_background(run)
            until(trial.traces(run).exists, "the submission is in preparation")
            threading.Event().wait(number * pause_s)
            answer = trial.reconcile(session, run, laptop=laptop)
            thread.join()
            if answer.submission == "unknown":
                answer = trial.reconcile(session, run, laptop=laptop)
        stored = trial.remembered(run)
        assert (answer.submission, answer.job_ids) == (stored.submission, stored.job_ids)
    trial.settle()


def test_the_job_and_log_paths_of_nemo_run_are_saved(nemo_run: Trial) -> None:
    run, messages = nemo_run.new(), list[str]()
    nemo_run.submit_in_background(run, messages).join()
    stored = nemo_run.remembered(run)
    assert (stored.submission, stored.note, len(stored.job_ids)) == ("submitted", "", 1)
    assert stored.log is not None
    name = "llmbench-llmbench.pretrain_nemotron4_15b_fp8_16"
    folder = Path(stored.log.folder)
    assert folder.is_dir()
    assert folder.is_relative_to(Path(spec_of(run).results) / "pretrain_nemotron4_15b_fp8_16")
    assert stored.job_log == JobLog(f"{folder}/log-{name}_%j_%r.out", (f"{folder}/sbatch_{name}_%j.out",))
    assert f"#SBATCH --output={folder}/sbatch_{name}_%j.out" in (folder.parent / f"{folder.name}_sbatch.sh").read_text()
    assert (folder_of(run) / "command.sh").read_text() == f"{spec_of(run).command}\n"
    assert messages
    assert all(line.startswith("launch.sh ") for line in messages)
    nemo_run.settle()


def test_the_job_and_log_paths_of_a_batch_script_are_saved(batch: Trial) -> None:
    run = batch.new()
    with batch.session() as session:
        stored = batch.submit(session, run)
        assert batch.submit(session, run) == stored
    results = f"{spec_of(run).root}/results/25.02/bf16/314b/8/log-nemo_grok1_314b_8_%j"
    outputs = (f"{results}.err", f"{spec_of(run).root}/slurm-%j.out")
    assert (stored.submission, stored.job_log) == ("submitted", JobLog(f"{results}.out", outputs))
    batch.settle()


@pytest.mark.parametrize("missing_step", ["repository", "environment", "image", "setup"])
def test_without_the_install_nothing_is_started(nemo_run: Trial, missing_step: str) -> None:
    run = nemo_run.new()
    site = nemo_run.intents.site  # type: ignore[attr-defined]
    path = Path(site.steps()[missing_step].results[0])
    away = path.rename(path.with_name("away"))
    try:
        with nemo_run.session() as session, pytest.raises(LlmbError, match="Not installed") as caught:
            nemo_run.submit(session, run)
    finally:
        away.rename(path)
    assert str(path) in caught.value.what
    assert caught.value.fix.startswith("Install the same selection first.")
    assert caught.value.exit_code == 1
    assert nemo_run.remembered(run).submission == "intended"
    assert not folder_of(run).exists()
    nemo_run.settle()


def test_without_the_token_that_it_needs_nothing_is_started(batch: Trial) -> None:
    run = batch.new(token_file=".llmb-tui/no-such-token")
    with batch.session() as session, pytest.raises(LlmbError, match="has no Hugging Face token") as caught:
        batch.submit(session, run)
    assert "--give hugging-face" in caught.value.fix
    assert not folder_of(run).exists()
    batch.settle()


def test_the_line_is_cut_while_nemo_run_is_at_work(nemo_run: Trial) -> None:
    for moment in ("before", "after", "status"):
        run = nemo_run.new()
        with LaunchHold(nemo_run.rig, moment) as hold:
            thread = nemo_run.submit_in_background(run)
            hold.wait()
            nemo_run.rig.servers.end_sessions("login")
            nemo_run.tally.drops += 1
        thread.join()
    nemo_run.settle()
    assert nemo_run.tally.ended == {"submitted": 3}


def test_launches_of_the_same_selection_at_once_keep_their_jobs_apart(batch: Trial, nemo_run: Trial) -> None:
    for trial, others in ((batch, 3), (nemo_run, 1)):
        first, messages = trial.new(), list[str]()
        with LaunchHold(trial.rig, "before") as hold:
            threads = [trial.submit_in_background(first)]
            hold.wait()
            rest = [trial.new() for _ in range(others)]
            threads += [trial.submit_in_background(run, messages) for run in rest]
            waits = f"Waiting for another launch in the same folder: run {first.id}, by "
            until(lambda: sum(waits in line for line in messages) == len(rest), "the others wait")  # noqa: B023 - at once
        for thread in threads:
            thread.join()
        trial.settle()
    assert batch.tally.ended == {"submitted": 6}


def test_a_batch_launch_is_killed_at_any_moment(batch: Trial) -> None:
    """The next launch of the same selection continues at once, and neither takes the other's job for its own."""
    for moment, whom in itertools.product(("before", "after"), (ONLY_LAUNCH_SH, WITH_ALL)):
        launch_killed(batch, moment, whom)
        batch.submit_in_background(batch.new()).join()
    batch.settle()
    assert batch.tally.ended == {"submitted": 7, "withdrawn": 1}


def test_a_dead_launch_is_not_waited_for(batch: Trial) -> None:
    """The first launch made no job, the second made one, and no third launch removes its lock."""
    for moment in ("before", "after"):
        launch_killed(batch, moment, WITH_ALL)
    batch.settle()
    assert batch.tally.ended == {"submitted": 1, "withdrawn": 1}


def test_a_launch_is_killed_from_its_beginning_to_its_end(batch: Trial) -> None:
    """Each attempt kills a little later."""
    for number, whom in itertools.product(range(8), (ONLY_LAUNCH_SH, WITH_ALL)):
        run = batch.new()
        thread = batch.submit_in_background(run)
        until((folder_of(run) / "claim").is_symlink, "the launch has begun")
        threading.Event().wait(number * 0.03)
        batch.rig.as_root(["kill", "-9", "--", f"{whom}{group_of(run)}"])
        batch.tally.drops += 1
        thread.join()
    batch.settle()
    assert set(batch.tally.ended) <= {"submitted", "withdrawn", "refused"}


def test_nemo_run_is_killed_at_any_moment(nemo_run: Trial) -> None:
    for moment, whom in itertools.product(("before", "after", "status"), (ONLY_LAUNCH_SH, WITH_ALL)):
        launch_killed(nemo_run, moment, whom)
    last = nemo_run.new()
    nemo_run.submit_in_background(last).join()
    nemo_run.settle()
    assert nemo_run.tally.ended == {"submitted": 6, "withdrawn": 1}
    logs = {stored.log for run in nemo_run.runs if (stored := nemo_run.remembered(run)).job_ids}
    assert None not in logs
    assert len(logs) == 6


def test_a_launch_that_waits_is_killed(batch: Trial) -> None:
    """The waiting launch has begun nothing, and the launch that it waits for is not disturbed."""
    first, second = batch.new(), batch.new()
    with LaunchHold(batch.rig, "before") as hold:
        threads = [batch.submit_in_background(first)]
        hold.wait()
        threads.append(batch.submit_in_background(second))
        until((folder_of(second) / "waits").exists, "it waits")
        kill(batch, second, WITH_ALL)
    for thread in threads:
        thread.join()
    batch.settle()
    assert batch.tally.ended == {"submitted": 1, "refused": 1}
