"""Submission over real SSH, with a Slurm of a few lines of sh, so that it can fail at any point."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from llmb_tui.cluster.failures import LoginNeededError
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.install import entry_path
from llmb_tui.launch.refusal import NEVER_SENT
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submission_status import probe
from llmb_tui.launch.submit import NotSubmittedError, reconcile, submit_once, withdraw
from llmb_tui.store import files
from llmb_tui.store.paths import UserPaths
from tests.kit.demo import drop_connections
from tests.kit.runs import direct_spec, start_late
from tests.kit.waiting import until
from tests.launch.cutting_session import WHENS, CuttingSession, When
from tests.launch.launch_cases import RUN_ID, MakeRun, replace_command
from tests.launch.submit_stage import SCRIPT, Stage


def test_a_run_is_submitted_and_remembered(stage: Stage) -> None:
    run = stage.submit()
    assert (run.submission, run.job_ids, run.note) == ("submitted", ("48123",), "")
    assert run.submitted_at is not None
    assert stage.jobs() == ["48123"]
    assert stage.runs.load(run.id) == run
    assert (stage.runs.folder(run.id) / "script.sh").read_text() == SCRIPT
    assert stage.events() == ["intent", "unknown", "submitted"]
    intent, *_, submitted = stage.journal.read()
    assert (intent["run"], intent["job_name"], intent["cluster"]) == (RUN_ID, run.job_name, "demo")
    assert submitted["job_ids"] == ["48123"]


def test_the_run_folder_contains_the_jobs_files(stage: Stage) -> None:
    run = stage.submit()
    assert (stage.task / "configs/plan.json").read_text() == dict(direct_spec(run).files)["configs/plan.json"]
    assert (stage.task / "configs/launch.json").read_text() == dict(direct_spec(run).files)["configs/launch.json"]
    assert (stage.task / "code/pretrain.py").read_text() == "hsqs, installed"
    assert (stage.task.parent / f"{direct_spec(run).task}_sbatch.sh").read_text() == SCRIPT


@pytest.mark.parametrize(("group_writable", "mode", "umask"), [(False, 0o755, "0022"), (True, 0o775, "0002")])
def test_only_the_operator_writes_to_a_runs_folder_and_the_group_next_to_it_if_the_profile_allows(
    stage: Stage, group_writable: bool, mode: int, umask: str
) -> None:
    stage.session.profile = replace(stage.profile, group_writable=group_writable)
    stage.on_sbatch('umask >"$STAGE/umask"')
    before = os.umask(0)
    try:
        stage.submit()
    finally:
        os.umask(before)
    own = (stage.task.parent, stage.task, stage.task / "configs", stage.traces)
    assert {path.stat().st_mode & 0o777 for path in own} == {0o755}
    assert stage.task.parent.parent.stat().st_mode & 0o777 == mode
    assert (stage.folder / "umask").read_text().strip() == umask


def test_the_intent_is_on_the_disk_before_anything_reaches_the_cluster(stage: Stage) -> None:
    stage.cluster.stop()
    with pytest.raises(LlmbError):
        stage.submit()
    assert stage.runs.load(RUN_ID).submission == "intended"
    assert stage.events() == ["intent"]


def test_submitting_twice_creates_one_job(stage: Stage) -> None:
    first = stage.submit()
    assert stage.submit() == first
    assert stage.submit(first) == first
    assert stage.jobs() == ["48123"]


def test_submitting_from_many_threads_at_once_creates_one_job(stage: Stage) -> None:
    outcomes: list[Run] = []
    threads = [threading.Thread(target=lambda: outcomes.append(stage.submit())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stage.jobs()) == 1
    assert {run.job_ids for run in outcomes} == {("48123",)}


def test_two_machines_that_submit_the_same_run_create_one_job(stage: Stage) -> None:
    runs = Runs(UserPaths(stage.folder / "config", stage.folder / "other state"))
    elsewhere = SlurmCluster(stage.profile)
    elsewhere.connect()
    outcomes: list[Run] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(submit_once(elsewhere, runs, stage.journal, stage.run, SCRIPT))
    )
    thread.start()
    outcomes.append(stage.submit())
    thread.join()
    elsewhere.close()
    assert len(stage.jobs()) == 1
    assert {run.job_ids for run in outcomes} == {("48123",)}


def test_a_refusal_keeps_slurms_words(stage: Stage) -> None:
    stage.on_sbatch("printf 'sbatch: error: Invalid \\033[31maccount or account/partition combination\\n' >&2; exit 1")
    with pytest.raises(LlmbError) as caught:
        stage.submit()
    assert caught.value.why == "sbatch said: Invalid account or account/partition combination"
    assert "sacctmgr" in caught.value.fix
    assert caught.value.exit_code == 1
    run = stage.runs.load(RUN_ID)
    assert (run.submission, run.note) == ("refused", "Invalid account or account/partition combination")
    assert stage.events()[-1] == "refused"


def test_a_secret_in_the_message_of_sbatch_reaches_neither_the_error_nor_the_record(stage: Stage) -> None:
    stage.on_sbatch("echo 'sbatch: error: Invalid account, JWT token=canary7Qz93817' >&2; exit 1")
    with pytest.raises(LlmbError) as caught:
        stage.submit()
    assert caught.value.why == "sbatch said: Invalid account, JWT token=[hidden]"
    assert stage.runs.load(RUN_ID).note == "Invalid account, JWT token=[hidden]"


def test_a_refused_run_stays_refused(stage: Stage) -> None:
    stage.on_sbatch("echo 'sbatch: error: Invalid account' >&2; exit 1")
    for _ in range(2):
        with pytest.raises(LlmbError, match="rejected"):
            stage.submit()
        stage.on_sbatch("")
    assert stage.jobs() == []


@pytest.mark.parametrize("missing", ["image", "entry"])
def test_a_missing_install_is_found_before_the_submission_begins(stage: Stage, missing: str) -> None:
    path = Path(direct_spec(stage.run).container_image if missing == "image" else entry_path(stage.profile.install_dir))
    path.unlink()
    with pytest.raises(LlmbError) as caught:
        stage.submit()
    assert str(path) in caught.value.what
    assert caught.value.exit_code == 1
    assert stage.runs.load(RUN_ID).submission == "intended"
    stage.install()
    assert stage.submit().submission == "submitted"


def test_a_folder_that_cannot_be_made_is_reported(stage: Stage) -> None:
    (Path(stage.profile.install_dir) / "workloads").write_text("in the way")
    with pytest.raises(LlmbError, match="Something else has this name: move it"):
        stage.submit()
    assert stage.jobs() == []


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_nothing_is_sent_if_this_machine_has_no_locks(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as without_locks:
        # The demo's Slurm runs in this process and keeps its own locks.
        without_locks.setattr(files, "fcntl", SimpleNamespace(**{**vars(fcntl), "flock": refuse}))
        with pytest.raises(LlmbError) as caught:
            stage.submit()
    assert os.strerror(number) in caught.value.why
    assert "LLMB_TUI_STATE_DIR" in caught.value.fix
    assert (stage.jobs(), stage.events(), stage.runs.folder(RUN_ID).exists()) == ([], [], False)
    assert stage.submit().submission == "submitted"


def test_an_answer_that_only_comes_later_is_waited_for(stage: Stage) -> None:
    stage.before_the_answer("sleep 1")
    assert stage.submit().job_ids == ("48123",)


@pytest.mark.parametrize(
    "answer",
    [
        'echo "$id;llmbrig"',  # SLURM_CLUSTERS is set, after pdsh#161
        'echo "--> Verifying valid submit host (login1)...OK"; echo "--> allocation (A-12345)...OK"; echo "$id"',
        'echo "Submitted batch job $id on cluster slaking"',  # without --parsable, after Parsl#2636
    ],
)
def test_a_wrapper_of_sbatch_costs_no_job(stage: Stage, answer: str) -> None:
    stage.before_the_answer(f"{answer}; exit 0")
    run = stage.submit()
    assert (run.submission, run.job_ids) == ("submitted", ("48123",))
    assert stage.submit() == run
    assert stage.jobs() == ["48123"]


def test_a_lost_conversation_with_the_controller_is_settled_by_the_jobs_name(stage: Stage) -> None:
    """sbatch reports a failure although Slurm has the job."""
    stage.before_the_answer("echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1")
    run = stage.submit()
    assert (run.submission, run.job_ids) == ("submitted", ("48123",))


def test_a_lost_conversation_without_a_job_stays_unknown(stage: Stage) -> None:
    stage.on_sbatch("echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1")
    run = stage.submit()
    assert run.submission == "unknown"
    assert "Socket timed out" in run.note
    assert stage.reconcile().submission == "unknown"
    # Later, Slurm has the job after all.
    (stage.folder / "jobs").write_text(f"48200 {run.job_name}\n")
    assert stage.reconcile().job_ids == ("48200",)


def test_an_sbatch_that_hangs_leaves_the_run_unknown_until_it_answers(stage: Stage) -> None:
    stage.give_up_after(0.5)
    stage.on_sbatch('while [ ! -e "$STAGE/go" ]; do sleep 0.02; done')
    run = stage.submit()
    assert run.submission == "unknown"
    assert "has not answered" in run.note
    assert stage.submit().submission == "unknown"
    assert stage.reconcile().submission == "unknown"
    (stage.folder / "go").touch()
    until((stage.traces / "exit").exists)
    assert stage.reconcile().job_ids == ("48123",)
    assert stage.jobs() == ["48123"]


def test_a_job_whose_submission_was_killed_is_found_by_its_name(stage: Stage) -> None:
    stage.before_the_answer("kill -9 $PPID; exit 1")  # submit.sh ends after Slurm has taken the job
    run = stage.submit()
    assert (run.submission, run.job_ids) == ("submitted", ("48123",))
    assert stage.submit() == run
    assert stage.jobs() == ["48123"]


def test_jobs_of_other_names_are_not_taken_for_it(stage: Stage) -> None:
    stage.give_up_after(0.5)
    (stage.folder / "jobs").write_text(f"1 {stage.run.job_name}x\n2 x{stage.run.job_name}\n")
    stage.on_sbatch("kill -9 $PPID; exit 1")
    assert stage.submit().submission == "unknown"


def test_a_run_that_another_is_submitting_is_left_alone(stage: Stage) -> None:
    stage.on_sbatch('while [ ! -e "$STAGE/go" ]; do sleep 0.02; done')
    thread = threading.Thread(target=stage.submit)
    thread.start()
    until((stage.traces / "claim").is_symlink)
    assert stage.reconcile().submission == "unknown"
    (stage.folder / "go").touch()
    thread.join()
    assert stage.runs.load(RUN_ID).job_ids == ("48123",)


@pytest.mark.parametrize("submission", ["intended", "submitted", "refused"])
def test_only_unknown_runs_are_reconciled(stage: Stage, submission: str) -> None:
    jobs = ("48123",) if submission == "submitted" else ()
    run = replace(stage.run, submission=submission, job_ids=jobs)  # type: ignore[arg-type]
    stage.runs.save(run)
    assert stage.reconcile() == run
    assert not stage.traces.exists()


def test_a_line_that_is_cut_while_slurm_thinks_changes_nothing(stage: Stage) -> None:
    stage.on_sbatch('while [ ! -e "$STAGE/go" ]; do sleep 0.02; done')
    outcomes: list[Run] = []
    thread = threading.Thread(target=lambda: outcomes.append(stage.submit()))
    thread.start()
    until((stage.traces / "claim").is_symlink)
    drop_connections(stage.cluster)
    (stage.folder / "go").touch()
    thread.join()
    assert [run.job_ids for run in outcomes] == [("48123",)]
    assert stage.jobs() == ["48123"]


# --- cuts ---------------------------------------------------------------------------------------------------------


def _count_calls(stage: Stage) -> int:
    """Number of remote calls of a submission without faults."""
    session = CuttingSession(stage.profile)
    submit_once(session, stage.runs, stage.journal, stage.run, SCRIPT)
    session.close()
    return session.calls


@pytest.mark.parametrize("when", WHENS)
def test_a_submission_cut_at_any_call_creates_at_most_one_job(stage: Stage, make_run: MakeRun, when: When) -> None:
    last = _count_calls(stage)
    seen = {_cut_at(stage, make_run(stage.profile, f"cut{index}"), index, when) for index in range(1, last + 1)}
    # If the job exists before the start is answered, no later call remains that could stay unsent.
    assert "submitted" in seen or when == "never sent"


def _cut_at(stage: Stage, run: Run, at: int, when: When) -> str:
    """Submit with a cut, then check and submit again as a user does. Returns the first outcome."""
    stage.next_job_is_of(run)
    session = CuttingSession(stage.profile, lambda: drop_connections(stage.cluster), at, when)
    try:
        submit_once(session, stage.runs, stage.journal, run, SCRIPT)
    except NotSubmittedError:
        known = stage.runs.load(run.id)
        assert (known.submission, known.note) == ("intended", "The connection broke.")
    first = stage.runs.load(run.id).submission
    session.at = 0
    if first == "intended":  # no submission has started, so a second attempt is correct
        submit_once(session, stage.runs, stage.journal, run, SCRIPT)
    known = reconcile(session, stage.runs, stage.journal, run)
    session.close()
    jobs = [line.split()[0] for line in (stage.folder / "jobs").read_text().splitlines() if line.endswith(run.job_name)]
    assert known.submission == "submitted"
    assert list(known.job_ids) == jobs
    assert len(jobs) == 1
    return first


def test_a_submission_that_was_withdrawn_cannot_begin_later(stage: Stage) -> None:
    """The start command was under way when the line broke, and arrives after the run was settled."""
    session = CuttingSession(stage.profile, at=_count_until_start(stage), when="command lost")
    session.cut = session.close
    assert submit_once(session, stage.runs, stage.journal, stage.run, SCRIPT).submission == "unknown"
    settled = stage.reconcile()
    assert (settled.submission, settled.note, settled.job_ids) == ("withdrawn", NEVER_SENT, ())
    probe(stage.session, stage.place, "start")
    start_late(stage.session, stage.place)
    assert stage.jobs() == []
    with pytest.raises(LlmbError, match="was not submitted") as caught:
        stage.submit()
    assert caught.value.why == NEVER_SENT


def _count_until_start(stage: Stage) -> int:
    """Number of the remote call that starts the submission: after preparing, the files and the script."""
    return 1 + len(direct_spec(stage.run).files) + 1 + 1


def test_a_login_that_only_a_person_can_repeat_leaves_the_run_unknown(stage: Stage) -> None:
    session = CuttingSession(stage.profile, _ask_for_a_code, _count_until_start(stage) + 1)
    stage.on_sbatch('while [ ! -e "$STAGE/go" ]; do sleep 0.02; done')
    run = submit_once(session, stage.runs, stage.journal, stage.run, SCRIPT)
    session.close()
    assert run.submission == "unknown"
    assert "log in" in run.note
    (stage.folder / "go").touch()
    until((stage.traces / "exit").exists)
    assert stage.reconcile().job_ids == ("48123",)


def _ask_for_a_code() -> None:
    raise LoginNeededError("Somebody has to log in again.")


def test_a_cluster_that_goes_away_after_the_start_leaves_the_run_unknown(stage: Stage) -> None:
    stage.give_up_after(0.5)
    session = CuttingSession(stage.profile, lambda: drop_connections(stage.cluster), _count_until_start(stage))
    stage.before_the_answer('touch "$STAGE/accepted"; while [ ! -e "$STAGE/go" ]; do sleep 0.02; done')

    def leave() -> None:
        until((stage.folder / "accepted").exists)
        session.close()

    thread = threading.Thread(target=leave)
    thread.start()
    run = submit_once(session, stage.runs, stage.journal, stage.run, SCRIPT)
    thread.join()
    assert run.submission == "unknown"
    (stage.folder / "go").touch()
    until((stage.traces / "exit").exists)
    assert stage.reconcile().job_ids == ("48123",)


def test_an_intent_is_withdrawn_and_never_sent_after_that(stage: Stage) -> None:
    stage.runs.save(stage.run)
    assert withdraw(stage.runs, stage.journal, stage.run).submission == "withdrawn"
    assert stage.events() == ["withdrawn"]
    with pytest.raises(LlmbError, match="was not submitted"):
        stage.submit()
    assert stage.jobs() == []


def test_a_failure_before_the_submission_reports_that_nothing_was_submitted(stage: Stage) -> None:
    session = CuttingSession(stage.profile, at=1, when="answer lost")
    with pytest.raises(NotSubmittedError) as caught:
        submit_once(session, stage.runs, stage.journal, stage.run, SCRIPT)
    session.close()
    assert caught.value.what == "Nothing was submitted. The connection broke."
    assert caught.value.why == "That was before the submission."
    assert (
        f"`llmb-tui submit --resume {RUN_ID}` submits it, `llmb-tui cancel {RUN_ID}` withdraws it." in caught.value.fix
    )
    assert (caught.value.run_id, caught.value.exit_code) == (RUN_ID, 2)
    assert stage.submit().submission == "submitted"


@pytest.mark.parametrize(
    ("when", "submission", "says"),
    [("prepare", "intended", "nothing was submitted"), ("probe", "unknown", "may have been submitted")],
)
def test_an_interrupted_submission_reports_its_state(
    stage: Stage, when: str, submission: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    name = {"prepare": "llmb_tui.launch.login_node.prepare", "probe": "llmb_tui.launch.submission_status.probe"}[when]
    monkeypatch.setattr(name, interrupt)
    with pytest.raises(LlmbError, match=says) as caught:
        stage.submit()
    assert (caught.value.run_id, caught.value.exit_code) == (RUN_ID, 130)
    assert RUN_ID in caught.value.fix
    assert stage.runs.load(RUN_ID).submission == submission


@pytest.mark.parametrize("purged", [False, True], ids=["traces", "job"])
def test_an_intent_that_was_sent_elsewhere_is_not_sent_again(stage: Stage, purged: bool) -> None:
    """For example from a copied or restored state directory; its traces on the cluster may have been removed."""
    stage.submit()
    stage.runs.save(stage.run)
    if purged:
        shutil.rmtree(stage.task.parent)
    assert stage.submit().job_ids == ("48123",)
    assert stage.jobs() == ["48123"]


def test_an_intended_run_stays_so_until_slurm_can_list_its_jobs(stage: Stage) -> None:
    stage.runs.save(stage.run)
    squeue = (Path(stage.cluster.root) / "bin/squeue").read_text()
    replace_command(stage.cluster.root, "squeue", "echo 'Socket timed out on send/recv operation' >&2; exit 1")
    with pytest.raises(NotSubmittedError, match="squeue"):
        stage.submit()
    assert (stage.runs.load(RUN_ID).submission, stage.jobs()) == ("intended", [])
    (Path(stage.cluster.root) / "bin/squeue").write_text(squeue)
    assert stage.submit().job_ids == ("48123",)


def test_an_intent_that_is_being_sent_is_not_withdrawn(stage: Stage) -> None:
    stage.runs.save(stage.run)
    with stage.runs.lock(RUN_ID), pytest.raises(LlmbError, match="being submitted"):
        withdraw(Runs(UserPaths(stage.folder / "config", stage.folder / "state")), stage.journal, stage.run)


def test_a_submitted_run_is_not_withdrawn(stage: Stage) -> None:
    run = stage.submit()
    assert withdraw(stage.runs, stage.journal, run) == run
    stage.set_unknown()
    assert withdraw(stage.runs, stage.journal, run).submission == "unknown"


@pytest.mark.parametrize("names", [("save",), ("save", "save_script")])
def test_a_disk_full_before_the_run_is_saved_is_reported_without_a_run_id(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    def full(*_: object) -> None:
        raise LlmbError("Could not write run.json.", "No space left on device.", "Make room.")

    for name in names:
        monkeypatch.setattr(Runs, name, full)
    with pytest.raises(NotSubmittedError) as caught:
        stage.submit()
    assert caught.value.fix == "Make room.\nSubmit it again."
    assert caught.value.run_id is None
    assert stage.jobs() == []
    assert not stage.runs.folder(RUN_ID).exists()


def test_a_run_folder_that_cannot_be_created_is_reported_without_a_run_id(stage: Stage) -> None:
    folder = stage.runs.folder(RUN_ID)
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    with pytest.raises(NotSubmittedError, match=r"^Nothing was submitted\. Could not") as caught:
        stage.submit()
    assert str(folder) in caught.value.what
    assert caught.value.fix.endswith("Submit it again.")
    assert caught.value.run_id is None
    assert stage.jobs() == []
    assert folder.read_text() == "in the way"


def test_a_full_disk_after_the_job_was_sent_names_the_job(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    save = Runs.save

    def full(runs: Runs, run: Run) -> None:
        if run.submission == "submitted":
            raise LlmbError("Could not write run.json.", "No space left on device.")
        save(runs, run)

    with monkeypatch.context() as broken:
        broken.setattr(Runs, "save", full)
        with pytest.raises(LlmbError, match=r"Job 48123 of run .* was submitted") as caught:
            stage.submit()
    assert "No space left" in caught.value.why
    assert caught.value.run_id == RUN_ID
    assert stage.submit().job_ids == ("48123",)
    assert stage.jobs() == ["48123"]


@pytest.mark.parametrize("room", range(7))
def test_a_disk_that_is_full_from_any_write_on_leaves_no_half_file_and_costs_no_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """`room`: number of files that can still be written. When there is room again, the submission goes well."""
    sync, synced = os.fsync, 0

    def sync_if_there_is_room(handle: int) -> None:
        nonlocal synced
        if stat.S_ISREG(os.fstat(handle).st_mode):
            synced += 1
            if synced > room:
                os.ftruncate(handle, max(0, os.fstat(handle).st_size - 20))  # the last bytes had no room
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", sync_if_there_is_room)
        with pytest.raises(LlmbError) as caught:
            stage.submit()
    assert "No space left on device" in caught.value.why
    assert "ree some space" in caught.value.fix
    folder = stage.runs.folder(RUN_ID)
    assert not list(folder.parent.rglob(".*"))
    assert not (folder / "run.json").exists() or stage.runs.load(RUN_ID).id == RUN_ID
    assert (folder / "script.sh").exists() is (folder / "run.json").exists()
    assert stage.submit().job_ids == ("48123",)
    assert stage.jobs() == ["48123"]
    assert stage.events()[-1] == "submitted"


@pytest.mark.parametrize("above", [0, 1, 2, 3])
def test_a_link_on_the_way_to_the_folder_of_a_run_is_refused_with_its_name(stage: Stage, above: int) -> None:
    place = Path(direct_spec(stage.run).experiment_dir).parents[above]
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        shutil.rmtree(place)
    place.symlink_to(elsewhere)
    with pytest.raises(LlmbError, match="Could not create the run's folder") as refused:
        stage.submit()
    assert f"{place} is a symbolic link" in refused.value.why
    assert list(elsewhere.iterdir()) == []
    assert stage.jobs() == []


def test_a_file_of_a_run_replaces_a_link_without_following_it(stage: Stage) -> None:
    stage.task.mkdir(parents=True)
    (stage.task / "configs").mkdir()
    (stage.task / "configs/plan.json").symlink_to(stage.folder / "name")
    before = (stage.folder / "name").read_text()
    stage.submit()
    assert (stage.folder / "name").read_text() == before
    assert not (stage.task / "configs/plan.json").is_symlink()
