"""Several processes with the same state and configuration at once: nothing is lost or duplicated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.clusters import Clusters
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.services import Services
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, UserPaths
from llmb_tui.store.settings import load_settings
from tests.kit.runs import make_run, slurm

PROGRAMS, TIMES = 3, 10
THEMES = ("nord", "gruvbox", "dracula")
ADD = ("--host", "h", "--account", "a", "--partition", "p", "--install-dir", "/x", "--json")

# Each process changes its own part of the shared state, as screens and verbs do, and prints the answers that it got.
PROGRAM = """
import sys
from pathlib import Path
from llmb_tui.cli import main
from llmb_tui.cluster.job import Job
from llmb_tui.errors import LlmbError
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import withdraw
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from llmb_tui.store.settings import keep_theme

me, times, theme, add = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
places = UserPaths.of_user()
runs, journal = Runs(places), Journal(places.journal)
print("ready", flush=True)
sys.stdin.readline()
for time in range(times):
    state = Job(str(me), "", "COMPLETED" if time == times - 1 else f"RUNNING{time}")
    while runs.load("shared").state_of(state.id) != state.state:
        runs.save_states(runs.load("shared"), [state])
    journal.append("noted", by=me, time=time)
    keep_theme(places.settings, theme)
    main(["clusters", "add", f"c{time % 5}", *add])
    assert len(runs.all()) == 2 and not runs.unreadable()
try:
    withdraw(runs, journal, runs.load("intent"))
except LlmbError as error:
    assert error.what == "Run intent is being submitted or withdrawn by another process."
print("done", me)
"""


def test_concurrent_programs_neither_lose_nor_duplicate_changes(tmp_path: Path) -> None:
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    runs = Runs(places)
    job_ids = tuple(str(number) for number in range(PROGRAMS))
    runs.save(make_run("shared", job_ids=job_ids))
    runs.save(make_run("intent", submission="intended", job_ids=()))
    places.settings.parent.mkdir()
    places.settings.write_text("# mine\n[verdict]\nthreshold = 0.9\n")
    environment = {**os.environ, CONFIG_VARIABLE: str(places.config), STATE_VARIABLE: str(places.state)}
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(me), str(TIMES), THEMES[me], *ADD],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for me in range(PROGRAMS)
    ]  # fmt: skip
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    answers = []
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    for me, program in enumerate(programs):
        out, err = program.communicate(timeout=120)
        assert out.endswith(f"done {me}\n"), err
        answers += [json.loads(line) for line in out.splitlines()[:-1]]
    _is_whole(places, runs.load("shared"), answers)
    assert runs.load("intent").submission == "withdrawn"


def _is_whole(places: UserPaths, shared: Run, answers: list[dict[str, object]]) -> None:
    assert {shared.state_of(job_id) for job_id in shared.job_ids} == {"COMPLETED"}
    events = Counter((one["event"], one.get("by"), one.get("time")) for one in Journal(places.journal).read())
    expected = [("noted", me, time) for me in range(PROGRAMS) for time in range(TIMES)]
    assert events == Counter([*expected, ("withdrawn", None, None)])
    saved = Counter(str(answer["name"]) for answer in answers if "name" in answer)
    assert saved == Counter(f"c{number}" for number in range(5)), "the second process is refused"
    assert {profile.name for profile in Services(places).clusters.profiles()} == set(saved)
    settings = load_settings(places.settings)
    assert (settings.theme in THEMES, settings.verdict.threshold) == (True, 0.9)
    assert places.settings.read_text().startswith("# mine\n")
    assert not list(places.config.rglob("*.unfinished"))
    assert not list(places.state.rglob("*.unfinished"))


def test_one_of_two_programs_that_add_a_cluster_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    saving, run_detached = threading.Event(), threading.Event()
    save = Clusters.save

    def slow_save(clusters: Clusters, profile: SlurmProfile) -> None:
        saving.set()
        assert run_detached.wait(30)
        save(clusters, profile)

    monkeypatch.setattr(Clusters, "save", slow_save)
    messages: list[str] = []

    def add(account: str) -> None:
        try:
            Services(places).clusters.add(SlurmProfile("eos", "h", account, "p", "/x"))
        except LlmbError as error:
            messages.append(error.what)

    threads = [threading.Thread(target=add, args=(account,)) for account in ("first", "second")]
    threads[0].start()
    assert saving.wait(30)
    saving.clear()
    threads[1].start()
    assert not saving.wait(0.2), "the second waits for the first"
    run_detached.set()
    for thread in threads:
        thread.join()
    assert messages == ["A cluster named eos already exists."]
    assert slurm(Services(places).clusters.profile("eos")).account == "first"


def test_a_change_of_a_cluster_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    clusters, other = Services(places).clusters, Services(places).clusters
    read = SlurmProfile("eos", "h", "first", "p", "/x")
    clusters.change(None, read)
    other.change(read, replace(read, account="second"))
    with pytest.raises(LlmbError, match="its file has changed since it was read"):
        clusters.change(read, replace(read, partition="q"))
    with pytest.raises(LlmbError, match="A cluster named eos already exists"):
        clusters.change(None, read)
    with pytest.raises(LlmbError, match="A cluster named eos already exists"):
        clusters.change(replace(read, name="tyche"), read)
    assert clusters.profile("eos") == replace(read, account="second")
    clusters.change(replace(read, account="second"), replace(read, account="third"))
    assert slurm(other.profile("eos")).account == "third"
