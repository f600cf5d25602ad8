"""`fetch` from this machine as the login node: fetched, refused and untouched files."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster_files.fetch import Fetch
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.programs import all_but
from tests.kit.runs import make_run, make_spec

PROFILE = random.Random(1).randbytes(300_000)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def task(home: Path, tmp_path: Path) -> Path:
    """Folder of a run on the cluster, with its files."""
    folder = tmp_path / "lustre" / "task"
    (folder / "nsys_profile").mkdir(parents=True)
    (folder / "code" / "deep").mkdir(parents=True)
    (folder / "nsys_profile" / "profile_1.nsys-rep").write_bytes(PROFILE)
    (folder / "torch_profile").mkdir()
    (folder / "torch_profile" / "rank0.json").write_text("{}")
    (folder / "log-acct-acct.t_48123_0.out").write_text("log\n")
    (folder / "empty.err").touch()
    (folder / "sbatch_acct-acct.t_48123.out").write_text("HF_TOKEN=hf_secret\n")
    (folder / "code" / "deep" / "setup.log").write_text("code\n")
    places = UserPaths(home / "config", home / "state")
    near = SlurmProfile("eos", "localhost", "acct", "batch", "/lustre", transport="local")
    Services(places).clusters.save(near)
    Runs(places).save(make_run("mine", folder, job_state="COMPLETED", log_read=True))
    return folder


def fetch(home: Path, *words: str, code: int = 0) -> Any:
    result = verbs.run(("fetch", "mine", *words, "--json"), verbs.environment(home))
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def states(document: dict[str, Any]) -> dict[str, str]:
    return {file["name"]: file["state"] for file in document["files"]}


def test_all_files_are_fetched_once(home: Path, task: Path, tmp_path: Path) -> None:
    to = tmp_path / "here"
    document = fetch(home, "--to", str(to), "--yes")
    names = ["empty.err", "log-acct-acct.t_48123_0.out", "nsys_profile/profile_1.nsys-rep", "torch_profile/rank0.json"]
    assert states(document) == dict.fromkeys(names, "fetched")
    assert sorted(str(path.relative_to(to)) for path in to.rglob("*") if path.is_file()) == names
    assert all((to / name).read_bytes() == (task / name).read_bytes() for name in names)
    assert (to / names[2]).stat().st_mode & 0o777 == 0o600
    assert document["left_out"] == [
        {"name": "sbatch_acct-acct.t_48123.out", "why": document["left_out"][0]["why"]},
    ]  # fmt: skip
    assert "tokens" in document["left_out"][0]["why"]
    again = fetch(home, "--to", str(to))  # without --yes, because no file is missing
    assert set(states(again).values()) == {"here"}
    assert {file["bytes_fetched"] for file in again["files"]} == {0}


@pytest.mark.usefixtures("task")
def test_a_partial_file_is_continued(home: Path, tmp_path: Path) -> None:
    part = tmp_path / "here" / "nsys_profile" / "profile_1.nsys-rep.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(PROFILE[:200_000])
    (document,) = fetch(home, "--profiles", "--to", str(tmp_path / "here"), "--yes")["files"]
    assert (document["state"], document["bytes_fetched"]) == ("fetched", 100_000)
    assert (part.parent / "profile_1.nsys-rep").read_bytes() == PROFILE
    assert not part.exists()


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize("name", ["profile_1.nsys-rep", "profile_1.nsys-rep.part"])
@pytest.mark.parametrize(
    "other",
    [b"mine", PROFILE + b"more", PROFILE[:70_000] + b"x" + PROFILE[70_001:100_000]],
    ids=["short", "longer", "changed"],
)
def test_another_file_of_the_same_name_is_kept(home: Path, tmp_path: Path, name: str, other: bytes) -> None:
    there = tmp_path / "here" / "nsys_profile" / name
    there.parent.mkdir(parents=True)
    there.write_bytes(other)
    (document,) = fetch(home, "--profiles", "--to", str(tmp_path / "here"), "--yes", code=1)["files"]
    assert document["state"] == "refused"
    assert f"{there} is another file" in document["why"]
    assert "--to" in document["why"]
    assert there.read_bytes() == other


def test_links_on_either_side_are_not_followed(home: Path, task: Path, tmp_path: Path) -> None:
    secret, outside = tmp_path / "id_rsa", tmp_path / "outside"
    secret.write_text("key")
    outside.mkdir()
    (task / "stolen.log").symlink_to(secret)
    (task / "dir").symlink_to(tmp_path)
    os.mkfifo(task / "pipe.log")
    to = tmp_path / "here"
    to.mkdir()
    (to / "torch_profile").symlink_to(outside)
    (to / "nsys_profile").mkdir()
    (to / "nsys_profile" / "profile_1.nsys-rep").symlink_to(outside / "new")
    document = fetch(home, "--to", str(to), "--yes", code=1)
    result = states(document)
    assert (result["torch_profile/rank0.json"], result["nsys_profile/profile_1.nsys-rep"]) == ("refused", "refused")
    assert list(outside.iterdir()) == []
    assert {one["name"] for one in document["left_out"]} >= {"stolen.log", "pipe.log"}
    assert not any(path.name == "id_rsa" for path in to.rglob("*"))


def test_a_folder_that_became_a_link_meanwhile_is_not_read(
    home: Path, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = tmp_path / "elsewhere"
    away.mkdir()
    (away / "profile_1.nsys-rep").write_text("a secret")
    every = Fetch.all

    def swapped(fetch: Fetch, tell: Any) -> Any:
        (task / "nsys_profile").rename(task / "before")
        (task / "nsys_profile").symlink_to(away)
        return every(fetch, tell)

    monkeypatch.setattr(Fetch, "all", swapped)
    (document,) = fetch(home, "--profiles", "--to", str(tmp_path / "here"), "--yes", code=1)["files"]
    assert document["state"] == "refused"
    assert "symbolic link" in document["why"]
    assert not (tmp_path / "here" / "nsys_profile" / "profile_1.nsys-rep").exists()


@pytest.mark.usefixtures("task")
def test_nothing_is_fetched_without_a_confirmation(home: Path, tmp_path: Path) -> None:
    error = fetch(home, "--to", str(tmp_path / "here"), code=1)["error"]
    assert "--yes" in error["fix"]
    assert not (tmp_path / "here").exists()
    assert "bandwidth limit cannot be" in fetch(home, "--limit", "1", code=1)["error"]["what"]


@pytest.mark.usefixtures("task")
def test_files_are_listed_with_sizes_and_a_missing_nsys_is_reported(home: Path, tmp_path: Path) -> None:
    words = ("fetch", "mine", "--profiles", "--to", str(tmp_path / "here"), "--yes")
    result = verbs.run(words, verbs.environment(home, PATH=all_but("nsys", tmp_path / "programs")))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[1].split()[:2] == ["nsys_profile/profile_1.nsys-rep", "profile"]
    assert "300 kB" in result.stdout
    assert "`nsys` is not on this machine or on the login node" in result.stderr


def test_a_run_without_files_and_a_missing_folder(home: Path, task: Path, tmp_path: Path) -> None:
    for path in task.rglob("*.nsys-rep"):
        path.unlink()
    assert fetch(home, "--profiles", "--to", str(tmp_path / "here"))["files"] == []
    task.rename(tmp_path / "moved")
    assert "no such folder" in fetch(home, code=1)["error"]["why"]


@pytest.mark.usefixtures("task")
def test_fetching_from_runai_is_refused_with_the_path(home: Path) -> None:
    spec = make_spec("mine")
    runai = RunaiSpec(
        run_id="mine", experiment="e", workload="w", kind="distributed", project="p", node_pool=None, nodes=1,
        gpus_per_node=8, time_limit="", image="i", mounts=(), results="/data/results", image_pull_secret=None,
        hub_credential=None, env=spec.env, files=(),
    )  # fmt: skip
    Runs(UserPaths(home / "config", home / "state")).save(make_run("mine", procedure="runai", spec=runai))
    error = fetch(home, code=1)["error"]
    assert "/data/results" in error["why"]
    assert "llmb-tui logs mine" in error["fix"]


@pytest.mark.usefixtures("task")
def test_fetch_needs_a_confirmation_at_a_terminal(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    def confirm(question: str) -> bool:
        requests.append(question)
        return len(requests) > 1

    monkeypatch.setattr("llmb_tui.cli.user.has_terminal", lambda: True)
    monkeypatch.setattr("llmb_tui.cli.user.confirm", confirm)
    for code in (1, 0):
        fetch(home, "--to", str(tmp_path / "here"), code=code)
        assert (tmp_path / "here").exists() == (code == 0)
    assert requests == [f"Fetch 300 kB into {tmp_path / 'here'}?"] * 2
