"""Items below an install directory and their removal, by a real shell, with hostile names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.failures import DisconnectedError, ReadOnlyError
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster_files.housekeeping import (
    BelongingsListing,
    InstallItem,
    install_items,
    judged,
    measure_items,
    remove,
    select_items,
)
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import RunOptions
from tests.kit.runs import CATALOG, NEMOTRON, make_run
from tests.kit.unprivileged import not_root

EXPERIMENT = "workloads/pretrain_nemotron4/experiments/e"
IMAGE = "images/nvidia+nemo+25.02.01.sqsh"
TRASH = f".llmb-tui/trash.{os.getuid()}"


class Place:
    """An install directory on this machine, next to files that do not belong to it."""

    def __init__(self, root: Path) -> None:
        self.install, self.elsewhere = root / "install", root / "elsewhere"
        self.session = SlurmCluster(
            SlurmProfile("eos", "local", "acct", "batch", f"{self.install}/", transport="local")
        )
        self.queue = root / "queue"
        for path in (IMAGE, "venvs/nemotron4-25.04/bin/python", f"{EXPERIMENT}/e_a/e_a/log", ".llmb-tui/code/x.py"):
            self.write(path)
        self.write(f"{EXPERIMENT}/e_a/e_a/code/nemo_experiments/default/t/checkpoints/last/weights")
        for step in ("image-nvidia+nemo+25.02.01", "environment-nemotron4-25.04", "repository-nemotron4-25.04"):
            self.write(f".llmb-tui/steps/{step}/log")
        self.elsewhere.mkdir()
        (self.elsewhere / "precious.sqsh").write_text("precious")

    def write(self, path: str, text: str = "x" * 5000) -> Path:
        file = self.install / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run(self, run_id: str = "a", **fields: Any) -> Run:
        run = make_run(
            run_id,
            task_dir=self.install / EXPERIMENT / f"e_{run_id}" / f"e_{run_id}",
            job_ids=("7",),
            job_state="COMPLETED",
            log_read=True,
        )
        return replace(run, **fields)

    def things(self, *runs: Run) -> dict[str, InstallItem]:
        items, _ = install_items(self.session, CATALOG, runs, {})
        return {thing.path: thing for thing in items}

    def remove(self, *names: str, runs: tuple[Run, ...] = ()) -> tuple[str, ...]:
        removal = remove(self.session, select_items(tuple(self.things(*runs).values()), names))
        assert (removal.kept, removal.left) == ({}, "")
        return removal.removed

    def left(self) -> list[str]:
        """Remaining files and links."""
        return sorted(str(path.relative_to(self.install)) for path in self.install.rglob("*") if not path.is_dir())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    programs = tmp_path / "bin"
    programs.mkdir()
    # Slurm's queue prints the content of the file.
    (programs / "squeue").write_text(f"#!/bin/sh\ncat {tmp_path}/queue 2>/dev/null\nexit 0\n")
    (programs / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("CDPATH", str(tmp_path / "elsewhere"))
    made = Place(tmp_path)
    yield made
    made.session.close()


def queued(place: Place, job_id: str) -> None:
    cells = [job_id, "RUNNING", "None", "1", "1:00", "0", "0", "0", "cn001", "name"]
    place.queue.write_text("\x1f".join(cells) + "\x1f\n")


def test_items_are_listed_with_size_and_run(place: Place) -> None:
    things = place.things(place.run())
    run, saved = f"{EXPERIMENT}/e_a", f"{EXPERIMENT}/e_a/e_a/code/nemo_experiments/default/t/checkpoints"
    assert {path: (thing.kind, thing.run_ids, thing.kept) for path, thing in things.items()} == {
        IMAGE: ("image", (), ""),
        "venvs/nemotron4-25.04": ("environment", (), ""),
        run: ("run", ("a",), ""),
        saved: ("checkpoint", ("a",), ""),
    }
    messages: list[str] = []
    sizes = {one.path: one.size or 0 for one in measure_items(place.session, tuple(things.values()), messages.append)}
    assert 5000 <= sizes[IMAGE] <= 20_000
    assert sizes[run] > sizes[saved] >= 5000
    assert messages == [f"Measuring 1 to 4 of 4: {IMAGE} …"]


def test_of_a_recipe_its_checkout_can_go_and_its_results_are_runs(place: Place) -> None:
    for name in ("nemotron4-25.04", "grok1-25.02"):
        place.write(f"published/{name}/repository/launch.sh")
        place.write(f"published/{name}/experiments/e/e_1/task/log")
        place.write(f"published/{name}/results/25.02/log")
    kept = {path: thing.kept for path, thing in place.things().items() if path.startswith("published")}
    unknown = "It belongs to no run that this machine remembers, and may belong to another machine."
    assert kept == {
        "published/grok1-25.02/repository": "This program did not install it.",
        "published/nemotron4-25.04/repository": "",
        "published/grok1-25.02/experiments/e/e_1": unknown,
        "published/nemotron4-25.04/experiments/e/e_1": unknown,
    }


def test_only_chosen_items_are_removed(place: Place) -> None:
    before = place.left()
    assert place.remove(IMAGE) == (IMAGE,)
    assert place.left() == [path for path in before if path != IMAGE]
    assert place.remove("a", f"{EXPERIMENT}/e_a", runs=(place.run(),)) == (f"{EXPERIMENT}/e_a",)
    assert place.left() == [path for path in before if path != IMAGE and not path.startswith(EXPERIMENT)]
    with pytest.raises(LlmbError, match="is not an item of this program"):
        place.remove(IMAGE)


def test_checkpoints_are_removed_without_their_run_and_nested_items_once(place: Place) -> None:
    things = place.things(place.run())
    saved = next(path for path in things if path.endswith("checkpoints"))
    assert select_items(tuple(things.values()), [saved, "a"]) == (things[f"{EXPERIMENT}/e_a"],)
    place.remove(saved, runs=(place.run(),))
    assert f"{EXPERIMENT}/e_a/e_a/log" in place.left()
    assert not any("checkpoints" in path for path in place.left())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"job_state": "RUNNING"}, "is active"),
        ({"job_state": None}, "is active"),
        ({"submission": "unknown", "job_ids": ()}, "unknown"),
        ({"submission": "intended", "job_ids": ()}, "not submitted"),
        ({"log_read": False}, "read to its end"),
        ({"log_read": None}, "read to its end"),
        ({"cluster": "selene"}, "cluster selene"),
        ({"procedure": "llmb"}, "llmb-run"),
        ({"id": "other", "spec": None}, "no run that this machine remembers"),
    ],
)
def test_a_run_that_is_active_or_unknown_is_kept(place: Place, fields: dict[str, Any], why: str) -> None:
    run = place.run(**fields)
    before = place.left()
    assert why in place.things(run)[f"{EXPERIMENT}/e_a"].kept
    with pytest.raises(LlmbError, match="cannot be removed"):
        place.remove(f"{EXPERIMENT}/e_a", runs=(run,))
    assert place.left() == before


def test_the_queue_decides_together_with_the_remembered_runs(place: Place) -> None:
    queued(place, "7")
    things = place.things(place.run())
    assert "is active" in things[f"{EXPERIMENT}/e_a"].kept
    assert "Job 7 is waiting or running" in things[IMAGE].kept
    queued(place, "8")
    things = place.things(place.run())
    assert things[f"{EXPERIMENT}/e_a"].kept == ""
    assert "Job 8 is waiting or running" in things[IMAGE].kept


def test_shared_items_stay_while_a_run_is_active(place: Place) -> None:
    things = place.things(place.run(), place.run("b", job_state="PENDING"))
    assert "Run b is active" in things[IMAGE].kept
    assert "Run b is active" in things["venvs/nemotron4-25.04"].kept
    assert things[f"{EXPERIMENT}/e_a"].kept == ""


def loading(path: str) -> Plan:
    """Plan of a run that starts from that checkpoint."""
    return plan(CATALOG, replace(NEMOTRON, options=RunOptions(load_checkpoint=path)))


SAVED = f"{EXPERIMENT}/e_a/e_a/code/nemo_experiments/default/t/checkpoints"


@pytest.mark.parametrize("at", [f"{SAVED}/last", f"{SAVED}/./last/", SAVED, f"{EXPERIMENT}/e_a"])
@pytest.mark.parametrize(
    "fields",
    [
        {"job_state": "PENDING"},
        {"submission": "unknown", "job_ids": (), "job_state": None, "cluster": "selene"},
        {"submission": "intended", "job_ids": ()},
    ],
)
def test_a_checkpoint_that_a_run_will_load_stays_with_its_folders(
    place: Place, at: str, fields: dict[str, Any]
) -> None:
    loader = place.run("b", plan=loading(f"{place.install}/{at}"), **fields)
    things = place.things(place.run(), loader)
    assert [things[path].kept for path in (SAVED, f"{EXPERIMENT}/e_a")] == ["Run b is to load from it."] * 2
    over = replace(loader, submission="submitted", job_ids=("8",), job_state="COMPLETED")
    things = place.things(place.run(), over)
    assert [things[path].kept for path in (SAVED, f"{EXPERIMENT}/e_a")] == ["", ""]


@pytest.mark.parametrize("through", ["install", "checkpoint"])
def test_a_checkpoint_that_is_named_through_a_link_stays(place: Place, tmp_path: Path, through: str) -> None:
    link, wanted = tmp_path / "link", place.install / SAVED / "last"
    if through == "install":
        link.symlink_to(place.install)
        profile = replace(place.session.profile, install_dir=str(link))
        place.session.close()
        place.install, place.session = link, SlurmCluster(profile)
    else:
        link.symlink_to(wanted)
        wanted = link
    loader = place.run("b", plan=loading(str(wanted)), job_state="PENDING")
    things = place.things(place.run(), loader)
    assert [things[path].kept for path in (SAVED, f"{EXPERIMENT}/e_a")] == ["Run b is to load from it."] * 2


def test_a_checkpoint_elsewhere_keeps_no_item(place: Place) -> None:
    loader = place.run("b", plan=loading(f"{place.install}/{SAVED}-other"), job_state="PENDING")
    assert place.things(place.run(), loader)[SAVED].kept == ""


def test_a_checkpoint_that_a_suite_is_to_load_stays_before_its_runs_are_stored(place: Place) -> None:
    to_load = {f"{place.install}/{SAVED}/last": "Suite s1 (nightly) is to load from it."}
    items, _ = install_items(place.session, CATALOG, (place.run(),), {}, to_load)
    kept = {thing.path: thing.kept for thing in items if thing.kept}
    assert kept == dict.fromkeys((SAVED, f"{EXPERIMENT}/e_a"), "Suite s1 (nightly) is to load from it.")


@pytest.mark.parametrize("upstream", [False, True])
def test_items_used_by_another_profile_in_the_same_directory_stay(place: Place, upstream: bool) -> None:
    run = place.run("b", cluster="eos-b", job_state="RUNNING")
    if upstream:  # its folders are known after its launch reports them
        spec = UpstreamSpec(
            *("b", "e", "e", f"{place.install}/.llmb-tui/launches/b", "launch.sh", "bash", "", "", "", ""),
            (), "", "acct", "batch", 8, 8, "", "00:15:00", "0", (),
        )  # fmt: skip
        run = replace(run, spec=spec)
    assert "Run b of eos-b is active" in place.things(place.run(), run)[IMAGE].kept
    elsewhere = make_run("b", cluster="eos-b", job_state="RUNNING")
    assert place.things(place.run(), elsewhere)[IMAGE].kept == ""


def test_items_of_an_active_suite_stay(place: Place) -> None:
    held = {"not-sent": "Suite s1 (nightly) is active."}
    items, _ = install_items(place.session, CATALOG, (place.run(),), held)
    kept = {thing.kind: thing.kept for thing in items}
    assert kept["image"] == kept["environment"] == "Suite s1 (nightly) is active. It may need it."
    assert kept["run"] == ""
    items, _ = install_items(place.session, CATALOG, (place.run(),), {"a": "Suite s1 (nightly) is active."})
    assert {thing.kept for thing in items if thing.kind in ("run", "checkpoint")} == {"Suite s1 (nightly) is active."}


def test_a_silent_slurm_keeps_everything(place: Place, tmp_path: Path) -> None:
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    assert all("Slurm does not report" in thing.kept for thing in place.things(place.run()).values())


def test_foreign_items_stay(place: Place) -> None:
    place.write("images/brought.sqsh")
    place.write("venvs/mine/bin/python")
    things = place.things()
    for path in ("images/brought.sqsh", "venvs/mine"):
        assert things[path].kept == "This program did not install it."


def lock(place: Place, owner: str) -> None:
    place.write(".llmb-tui/steps/image-nvidia+nemo+25.02.01/lock/owner", owner)


def test_nothing_goes_while_an_install_is_at_work_whenever_that_began(place: Place) -> None:
    things = tuple(place.things(place.run()).values())
    lock(place, f"someone@elsewhere.{os.getpid()}.1")
    before = place.left()
    assert all("An install is in progress: image-" in thing.kept for thing in place.things().values())
    removal = remove(place.session, select_items(things, [IMAGE]))
    assert removal.removed == ()
    assert "An install step is at work" in removal.kept[IMAGE]
    assert place.left() == before


def test_a_dead_lock_delays_no_removal(place: Place) -> None:
    lock(place, "someone@elsewhere.1.1")
    folder = place.install / ".llmb-tui/steps/image-nvidia+nemo+25.02.01/lock"
    os.utime(folder, (1, 1))
    assert place.remove(IMAGE) == (IMAGE,)


def test_a_step_whose_job_waits_is_at_work(place: Place) -> None:
    place.write(".llmb-tui/steps/image-nvidia+nemo+25.02.01/job", "12\n")
    assert place.things()[IMAGE].kept == ""
    queued(place, "12")
    assert "An install is in progress" in place.things()[IMAGE].kept


def test_links_are_not_listed_and_never_followed(place: Place) -> None:
    os.symlink(place.elsewhere, place.install / "venvs" / "away")
    os.symlink(place.elsewhere / "precious.sqsh", place.install / "images" / "precious.sqsh")
    os.symlink(place.elsewhere, place.install / "published")
    (place.elsewhere / "nemotron4-25.04").mkdir()
    (place.elsewhere / "nemotron4-25.04" / "repo").mkdir()
    os.symlink(place.elsewhere, place.install / EXPERIMENT / "e_link")
    os.symlink("/", place.install / EXPERIMENT / "e_a" / "root")
    assert set(place.things(place.run())) == {
        IMAGE,
        "venvs/nemotron4-25.04",
        f"{EXPERIMENT}/e_a",
        f"{EXPERIMENT}/e_a/e_a/code/nemo_experiments/default/t/checkpoints",
    }
    place.remove("a", runs=(place.run(),))
    assert (place.elsewhere / "precious.sqsh").read_text() == "precious"
    assert (place.elsewhere / "nemotron4-25.04" / "repo").is_dir()


@pytest.mark.parametrize("path", ["images/linked", "images/linked/x", "images", "away/precious.sqsh", "../elsewhere"])
def test_a_path_that_became_a_link_is_not_removed(place: Place, path: str) -> None:
    """The link appears between listing and removal, or the listing was wrong."""
    os.symlink(place.elsewhere, place.install / "away")
    os.symlink(place.elsewhere, place.install / "images" / "linked")
    if path == "images":
        (place.install / "images").rename(place.elsewhere / "images")
        os.symlink(place.elsewhere / "images", place.install / "images")
    removal = remove(place.session, [InstallItem("image", path)])
    assert removal.removed == ()
    assert "link" in removal.kept[path] or "no longer exists" in removal.kept[path]
    assert (place.elsewhere / "precious.sqsh").read_text() == "precious"


def test_an_install_directory_that_is_a_link_is_followed(place: Place, tmp_path: Path) -> None:
    os.symlink(place.install, tmp_path / "by-link")
    profile = replace(place.session.profile, install_dir=str(tmp_path / "by-link"))
    session = SlurmCluster(profile)
    items, _ = install_items(session, CATALOG, (), {})
    assert remove(session, select_items(items, [IMAGE])).removed == (IMAGE,)
    assert not (place.install / IMAGE).exists()
    session.close()


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "$(touch hacked)",
        "`touch hacked`",
        "-rf",
        "*",
        "a\nimage yes yes images",
        "\x1b[2J",
        "é",
        ";rm -rf .",
        "'",
    ],
)
def test_a_foreign_name_is_counted_and_not_touched(place: Place, name: str) -> None:
    for folder in ("images", "venvs", EXPERIMENT, f"{EXPERIMENT}/e_a"):
        place.write(f"{folder}/{name}.sqsh/e_b/code/nemo_experiments/{name}/checkpoints/x")
    before = place.left()
    items, more = install_items(place.session, CATALOG, (place.run(),), {})
    usual = {IMAGE, "venvs/nemotron4-25.04", f"{EXPERIMENT}/e_a"}
    assert {thing.path for thing in items if not thing.kept and thing.kind != "checkpoint"} == usual
    assert more or name == "-rf"
    place.remove(IMAGE)
    assert place.left() == [path for path in before if path != IMAGE]


def test_items_beyond_the_limit_are_counted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.cluster_files.housekeeping.MOST", 2)
    items, more = install_items(place.session, CATALOG, (), {})
    assert (len(items), more) == (2, 2)


def test_a_removal_that_was_cut_is_finished_by_the_next(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    run_script = SlurmCluster.run_script

    def cut(session: SlurmCluster, script: str, args: Any = (), **how: Any) -> Any:
        answer = run_script(session, script, args, **how)
        if "discard.sh" in script:
            sent.append(len(args))
            if len(sent) in (1, 3):
                raise DisconnectedError("eos", may_have_run=True)
        return answer

    monkeypatch.setattr(SlurmCluster, "run_script", cut)
    assert place.remove(IMAGE) == (IMAGE,)
    assert sent == [3, 3, 2, 2]
    assert list((place.install / TRASH).iterdir()) == []


@pytest.mark.parametrize("trash", [TRASH, ".llmb-tui/trash"], ids=["own", "earlier"])
def test_an_incomplete_deletion_is_listed_and_repeated(place: Place, trash: str) -> None:
    place.write(f"{trash}/17.1.1/deep/file")
    os.chmod(place.install / trash / "17.1.1/deep", 0o500)
    assert place.things()[f"{trash}/17.1.1"].kind == "trash"
    with not_root():
        place.remove("trash")
    assert list((place.install / trash).iterdir()) == []


def test_the_trash_of_another_user_blocks_nothing(place: Place) -> None:
    theirs = place.write(".llmb-tui/trash/17.1.1")
    theirs.parent.chmod(0)
    with not_root():
        assert place.remove(IMAGE) == (IMAGE,)
    theirs.parent.chmod(0o700)
    assert theirs.exists()


def test_a_trash_that_leads_away_is_refused(place: Place) -> None:
    os.symlink(place.elsewhere, place.install / TRASH)
    with pytest.raises(LlmbError, match="cannot be used"):
        place.remove(IMAGE)
    assert (place.install / IMAGE).exists()
    assert (place.elsewhere / "precious.sqsh").read_text() == "precious"


def test_an_earlier_trash_behind_a_link_is_not_touched(place: Place) -> None:
    os.symlink(place.elsewhere, place.install / ".llmb-tui/trash")
    assert place.remove(IMAGE) == (IMAGE,)
    assert (place.elsewhere / "precious.sqsh").read_text() == "precious"


def test_read_only_mode_removes_nothing(place: Place) -> None:
    place.session.read_only = True
    with pytest.raises(ReadOnlyError):
        remove(place.session, [InstallItem("image", IMAGE)])
    assert (place.install / IMAGE).exists()


def test_a_missing_directory_is_reported(place: Place) -> None:
    session = SlurmCluster(replace(place.session.profile, install_dir="/nowhere/at/all"))
    with pytest.raises(LlmbError, match="/nowhere/at/all"):
        install_items(session, CATALOG, (), {})
    with pytest.raises(LlmbError, match="has no install directory"):
        install_items(SlurmCluster(replace(session.profile, install_dir="/")), CATALOG, (), {})
    session.close()


def test_items_of_others_and_items_that_contain_kept_ones_stay() -> None:
    listing = BelongingsListing(
        "/lustre",
        (
            ("image", "images/a.sqsh", False, True),
            ("repository", "published/r/data", True, True),
            ("run", "published/r/data/e/e_1", True, True),
            ("checkpoint", "images/checkpoints", True, True),
        ),
    )
    image, data, _, stray = judged(listing, (), "eos")
    assert image.kept == "It belongs to another user."
    assert data.kept.startswith("It contains published/r/data/e/e_1.")
    assert stray.kept.startswith("It belongs to no run")
