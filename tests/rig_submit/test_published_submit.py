"""Launches by the published procedure on a real login node: one intent, one launch, and all of its jobs known.

Of the two recipes one has NeMo-Run, really installed, and one is a batch script by itself. The truth is what Slurm has,
and which launch called sbatch.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.errors import Trouble
from llmb_tui.launch.job_log import JobLog
from llmb_tui.launch.run import Run
from llmb_tui.launch.submit import submit
from tests.rig.waiting import wait_for
from tests.rig_submit.intents import Laptop
from tests.rig_submit.laptop import KilledLaptops
from tests.rig_submit.published_intents import Held, folder_of, group_of, spec_of
from tests.rig_submit.trial import Trial, places

ONLY_LAUNCH_SH, WITH_ALL = "", "-"


def kill(trial: Trial, run: Run, whom: str) -> None:
    """End launch.sh alone, or all that it has started too."""
    wait_for("the launch has begun", lambda: group_of(run) != "-")
    trial.rig.as_root(["kill", "-9", "--", f"{whom}{group_of(run)}"], check=True)
    trial.tally.drops += 1


def submit_in_background(trial: Trial, run: Run, told: list[str] | None = None) -> threading.Thread:
    """Submit a run meanwhile; `told` is given what the submission says of itself."""

    def work() -> None:
        with trial.session() as session, contextlib.suppress(Trouble):
            laptop, listener = trial.laptop, told.append if told is not None else None
            submit(session, laptop.runs, laptop.journal, run, trial.intents.script(run), on_progress=listener)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_nemo_runs_job_is_known_and_where_it_writes(nemo_run: Trial) -> None:
    run, told = nemo_run.new(), list[str]()
    submit_in_background(nemo_run, run, told).join()
    known = nemo_run.remembered(run)
    assert (known.submission, known.note, len(known.job_ids)) == ("submitted", "", 1)
    assert known.log is not None
    name = "llmbench-llmbench.pretrain_nemotron4_15b_fp8_16"
    folder = Path(known.log.folder)
    assert folder.is_dir()
    assert folder.is_relative_to(Path(spec_of(run).results) / "pretrain_nemotron4_15b_fp8_16")
    assert known.job_log == JobLog(f"{folder}/log-{name}_%j_%r.out", (f"{folder}/sbatch_{name}_%j.out",))
    assert f"#SBATCH --output={folder}/sbatch_{name}_%j.out" in (folder.parent / f"{folder.name}_sbatch.sh").read_text()
    assert (folder_of(run) / "command.sh").read_text() == f"{spec_of(run).command}\n"
    assert told
    assert all(line.startswith("launch.sh ") for line in told)
    nemo_run.settle()


def test_a_batch_scripts_job_is_known_and_where_it_writes(batch: Trial) -> None:
    run = batch.new()
    with batch.session() as session:
        known = batch.submit(session, run)
        assert batch.submit(session, run) == known
    results = f"{spec_of(run).root}/results/25.02/bf16/314b/8/log-nemo_grok1_314b_8_%j"
    beside = (f"{results}.err", f"{spec_of(run).root}/slurm-%j.out")
    assert (known.submission, known.job_log) == ("submitted", JobLog(f"{results}.out", beside))
    batch.settle()


@pytest.mark.parametrize("gone", ["repository", "environment", "image", "setup"])
def test_without_the_install_nothing_is_started(nemo_run: Trial, gone: str) -> None:
    run = nemo_run.new()
    site = nemo_run.intents.site  # type: ignore[attr-defined]
    path = Path(site.steps()[gone].results[0])
    away = path.rename(path.with_name("away"))
    try:
        with nemo_run.session() as session, pytest.raises(Trouble, match="Not installed") as caught:
            nemo_run.submit(session, run)
    finally:
        away.rename(path)
    assert str(path) in caught.value.what
    assert (caught.value.fix, caught.value.exit_code) == ("Install the same selection first.", 1)
    assert nemo_run.remembered(run).submission == "intended"
    assert not folder_of(run).exists()
    nemo_run.settle()


def test_without_the_token_that_it_needs_nothing_is_started(batch: Trial) -> None:
    run = batch.new(token_file=".llmb-tui/no-such-token")
    with batch.session() as session, pytest.raises(Trouble, match="There is no Hugging Face token on") as caught:
        batch.submit(session, run)
    assert "--give hugging-face" in caught.value.fix
    assert not folder_of(run).exists()
    batch.settle()


def test_the_line_is_cut_at_any_place(batch: Trial) -> None:
    sizes = batch.submission_sizes()
    batch.submit_on_cut_lines((cut,) for cut in places(sizes, 4, 2))
    batch.settle()
    assert batch.tally.drops >= len(sizes) * 6
    assert set(batch.tally.ended) == {"submitted"}


def test_the_line_is_cut_for_good(batch: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = batch.submission_sizes()
    monkeypatch.setattr("llmb_tui.launch.published.way.PublishedWay.answers_within_s", 0.2)
    batch.submit_on_cut_lines((cut,) for cut in places(sizes, 4, 2, stays=True) if cut.call >= len(sizes) - 1)
    batch.settle()
    assert batch.tally.were_unknown > 0
    assert set(batch.tally.ended) <= {"submitted", "withdrawn"}


def test_the_line_is_cut_while_nemo_run_is_at_work(nemo_run: Trial) -> None:
    for moment in ("before", "after", "status"):
        run = nemo_run.new()
        with Held(nemo_run.rig, moment) as held:
            thread = submit_in_background(nemo_run, run)
            held.wait()
            nemo_run.rig.servers.end_sessions("login")
            nemo_run.tally.drops += 1
        thread.join()
    nemo_run.settle()
    assert nemo_run.tally.ended == {"submitted": 3}


def test_the_laptop_dies_at_any_step(batch: Trial, tmp_path: Path) -> None:
    with contextlib.closing(KilledLaptops()) as laptops:

        def die(at: int, *, after: bool) -> int:
            run = batch.new()
            script = batch.intents.script(run)
            steps, code = laptops.submit(tmp_path, run, script, batch.intents.profile(), dies_at=at, after=after)
            assert code == (-9 if at else 0)
            return steps

        steps = die(0, after=False)
        for at, after in itertools.product(range(1, steps + 1), (False, True)):
            die(at, after=after)
            batch.tally.drops += 1
    batch.settle()
    assert set(batch.tally.ended) == {"intended", "submitted", "withdrawn"}


def test_two_laptops_submit_the_same_run(batch: Trial, nemo_run: Trial, tmp_path: Path) -> None:
    other = Laptop(tmp_path / "other")
    for trial in (batch, batch, batch, nemo_run):
        run = trial.new()
        with trial.session() as here, trial.session() as there:
            thread = threading.Thread(target=trial.submit, args=(there, run), kwargs={"laptop": other})
            thread.start()
            trial.submit(here, run)
            thread.join()
        assert other.runs.load(run.id).job_ids == trial.remembered(run).job_ids
    for trial in (batch, nemo_run):
        trial.settle()
    assert set(batch.tally.ended) == {"submitted"}


def test_one_laptop_asks_while_another_submits(batch: Trial, tmp_path: Path) -> None:
    """Whoever comes first decides, and both know."""
    other = Laptop(tmp_path / "other")
    for number in range(8):
        run = batch.new()
        other.runs.save(replace(run, submission="unknown"))
        with batch.session() as there:
            there.connect()
            thread = submit_in_background(batch, run)
            wait_for("the launch is being prepared", folder_of(run).exists)
            threading.Event().wait(number * 0.03)
            asked = batch.reconcile(there, run, laptop=other)
            thread.join()
            if asked.submission == "unknown":
                asked = batch.reconcile(there, run, laptop=other)
        known = batch.remembered(run)
        assert (asked.submission, asked.job_ids) == (known.submission, known.job_ids)
    batch.settle()


def test_launches_of_the_same_selection_at_once_keep_their_jobs_apart(batch: Trial, nemo_run: Trial) -> None:
    for trial in (batch, nemo_run):
        first, told = trial.new(), list[str]()
        with Held(trial.rig, "before") as held:
            threads = [submit_in_background(trial, first)]
            held.wait()
            rest = [trial.new() for _ in range(3)]
            threads += [submit_in_background(trial, run, told) for run in rest]
            waits = f"Another launch in the same folder is waited for: run {first.id}, by "
            wait_for("the others wait", lambda: sum(waits in line for line in told) == len(rest))  # noqa: B023 - at once
        for thread in threads:
            thread.join()
        trial.settle()
    assert batch.tally.ended == {"submitted": 8}


def test_a_batch_launch_is_killed_at_any_moment(batch: Trial) -> None:
    """The next launch, of the same selection, goes on at once, and none takes the other's job for its own."""
    for moment, whom in itertools.product(("before", "after"), (ONLY_LAUNCH_SH, WITH_ALL)):
        run = batch.new()
        with Held(batch.rig, moment) as held:
            thread = submit_in_background(batch, run)
            held.wait()
            kill(batch, run, whom)
        thread.join()
        submit_in_background(batch, batch.new()).join()
    batch.settle()
    assert batch.tally.ended == {"submitted": 7, "withdrawn": 1}


def test_a_launch_is_killed_from_its_beginning_to_its_end(batch: Trial) -> None:
    """A little later each time."""
    for number, whom in itertools.product(range(8), (ONLY_LAUNCH_SH, WITH_ALL)):
        run = batch.new()
        thread = submit_in_background(batch, run)
        wait_for("the launch has begun", (folder_of(run) / "claim").is_symlink)
        threading.Event().wait(number * 0.03)
        batch.rig.as_root(["kill", "-9", "--", f"{whom}{group_of(run)}"])
        batch.tally.drops += 1
        thread.join()
    batch.settle()
    assert set(batch.tally.ended) <= {"submitted", "withdrawn", "refused"}


def test_nemo_run_is_killed_at_any_moment(nemo_run: Trial) -> None:
    for moment, whom in itertools.product(("before", "after", "status"), (ONLY_LAUNCH_SH, WITH_ALL)):
        run = nemo_run.new()
        with Held(nemo_run.rig, moment) as held:
            thread = submit_in_background(nemo_run, run)
            held.wait()
            kill(nemo_run, run, whom)
        thread.join()
    last = nemo_run.new()
    submit_in_background(nemo_run, last).join()
    nemo_run.settle()
    assert nemo_run.tally.ended == {"submitted": 6, "withdrawn": 1}
    logs = {known.log for run in nemo_run.runs if (known := nemo_run.remembered(run)).job_ids}
    assert None not in logs
    assert len(logs) == 6


def test_a_launch_that_waits_is_killed(batch: Trial) -> None:
    """Nothing has begun, and the one that is waited for is not disturbed."""
    first, second = batch.new(), batch.new()
    with Held(batch.rig, "before") as held:
        threads = [submit_in_background(batch, first)]
        held.wait()
        threads.append(submit_in_background(batch, second))
        wait_for("it waits", (folder_of(second) / "waits").exists)
        kill(batch, second, WITH_ALL)
    for thread in threads:
        thread.join()
    batch.settle()
    assert batch.tally.ended == {"submitted": 1, "refused": 1}
