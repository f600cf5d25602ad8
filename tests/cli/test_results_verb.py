"""`results`: runs of this program, and logs of any training here or on a cluster. Values worked out by hand."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.batch import ask as ask_cluster
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.suite import make_suite
from tests.kit import verbs
from tests.kit.runs import CATALOG, NEMOTRON, make_run
from tests.kit.unprivileged import not_root
from tests.launch.test_adopt import CONFIG, TASK

LINE = (
    "Training epoch 0, iteration {0}/{3} | lr: 1e-4 | global_batch_size: 256 | global_step: {0} | "
    "reduced_train_loss: {1} | train_step_timing in s: {2}\n"
)
FLAGS = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
GOLDEN = Path(__file__).parents[1] / "watch" / "golden"
SAVED = "Global Checkpoint Save : Rank: 0 : Iteration: 50 : Start time: 1744408121.151s : Save duration: 4.389s\n"


def log(seconds: float = 1.98, last_s: float = 2.0, steps: int = 50, loss: float = 12.0, total: int = 50) -> str:
    """A step takes `seconds`, the last one `last_s`; the loss falls by 0.1 each."""
    times = [seconds] * (steps - 1) + [last_s]
    lines = (LINE.format(at, round(loss - at / 10, 3), time, total - 1) for at, time in enumerate(times))
    return "model\n" + "".join(lines)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def ask(home: Path, *words: str, code: int = 0) -> str:
    done = verbs.run(("results", *words), verbs.environment(home))
    assert done.returncode == code, done.stderr
    return done.stdout


def documents(home: Path, *words: str, code: int = 0) -> list[dict[str, Any]]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    found: list[dict[str, Any]] = json.loads(ask(home, *words, "--json", code=code), parse_constant=refuse)
    return found


def remember(home: Path, run_id: str, text: str, **changes: Any) -> None:
    services = Services(UserPaths(home / "config", home / "state"))
    run = make_run(run_id, job_state="COMPLETED", log_read=True, plan=plan(CATALOG, NEMOTRON), **changes)
    services.runs.save(run)
    (services.runs.folder(run_id) / "log").write_text(text)


def test_a_run_with_all_that_follows_from_its_step_time(home: Path) -> None:
    """256 sequences of 4,096 tokens in 2 s are 524,288 tokens/s; 3.85e14 FLOPs each on 64 GPUs 770 TFLOPS; of 1,979."""
    remember(home, "first", log(), created_at=1.0)
    remember(home, "second", log(loss=12.006) + SAVED, created_at=2.0)
    (one,) = documents(home, "second")
    result = one["result"]
    assert (one["step_time_s"], one["rule"]) == (2.0, "last step")
    assert result["tokens_per_s"] == 524288
    assert result["tflops_per_gpu"] == pytest.approx(770.0, abs=0.01)
    assert result["mfu_pct"] == pytest.approx(38.909, abs=1e-3)
    assert result["days_per_1t_tokens"] == pytest.approx(22.076, abs=1e-3)
    # 45 steps after the warm-up: 44 of 1.98 s and one of 2.
    assert (result["steady"]["count"], result["steady"]["median"]) == (45, 1.98)
    assert result["steady"]["mean"] == pytest.approx((44 * 1.98 + 2) / 45)
    assert (result["estimate"]["method"], result["published"]["step_time_s"]) == ("published", 1.98)
    assert result["checkpoints"] == [{"kind": "save", "iteration": 50, "seconds": 4.389}]
    loss = result["loss"]
    assert (loss["first"], loss["last"], loss["falls"]) == (12.006, 7.106, True)
    against = loss["against_first"]
    assert (against["run"], against["step"]) == ("first", 49)
    assert against["last_pct"] == pytest.approx(100 * (7.106 / 7.1 - 1))
    assert documents(home, "first")[0]["result"]["loss"]["against_first"] is None
    said = ask(home, "second")
    for words in (
        "524,288",
        "published        1.98 s",
        "checkpoint       save 4.389 s at iteration 50",
        "+0.085 % from run first",
    ):
        assert words in said


def test_a_loss_that_is_no_number_is_null_with_a_word(home: Path) -> None:
    remember(home, "bad", log().replace("reduced_train_loss: 7.1 ", "reduced_train_loss: nan "))
    (one,) = documents(home, "bad")
    loss = one["result"]["loss"]
    assert (loss["last"], loss["falls"], loss["words"]) == (None, False, "1 step has a loss that is not a number")


def test_a_log_without_a_configuration_says_what_it_says_itself(home: Path) -> None:
    (one,) = documents(home, str(GOLDEN / "nemo-2.4.0-flops.log"))
    result = one["result"]
    assert (one["selection"], one["verdict"]["result"], one["steps_done"], one["steps_total"]) == (None, None, 30, 30)
    assert "does not say which configuration" in one["verdict"]["reasons"][0]
    assert [result[name] for name in ("tokens_per_s", "tflops_per_gpu", "mfu_pct", "estimate")] == [None] * 4
    assert result["logged_tflops_per_gpu"]["count"] == 25
    assert documents(home, str(GOLDEN / "nemo-2.2.1-save.log"))[0]["result"]["checkpoints"][0]["kind"] == "save"


ODD = {
    "duration": SAVED.replace("4.389", "12.3.4"),
    "count": SAVED.replace("50 :", "9" * 5000 + " :"),
    "step": f"iteration {'9' * 5000}/49 iteration 36/{'9' * 5000} | train_step_timing in s: 2.0\n",
    "time": LINE.format(36, 9.0, "1e999", 49) * 2,
    "tflops": "".join(
        LINE.format(at, 9.0, 2.0, 49).replace(" | consumed", f" | TFLOPS_per_GPU: {tflops} | consumed")
        for at, tflops in ((49, 770), (49, 1e308), (49, 1e308))
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_number_in_one_log_spoils_no_answer_about_any(home: Path, odd: str) -> None:
    """Logs hold what ranks have written at once, and what failing programs leave."""
    remember(home, "odd", log() + ODD[odd] + log()[6:].replace(" | consumed", " | TFLOPS_per_GPU: 1e308 | consumed"))
    remember(home, "well", log())
    for rule in ("recipe", "parse_train_timing", "llmb-run"):
        assert [one["id"] for one in documents(home, "odd", "well", "--rule", rule)] == ["odd", "well"]
    for words in (("report", "well", "odd"), ("compare", "odd", "well", "--json"), ("jobs", "--prune", "--yes")):
        done = verbs.run(words, verbs.environment(home))
        assert (done.returncode, "fault" in done.stderr) == (0, False), done.stderr
    assert not (home / "state" / "runs" / "odd" / "log").exists()
    assert not (home / "state" / "runs" / "well" / "log").exists()


def test_the_bar_of_a_hydra_recipe(home: Path, tmp_path: Path) -> None:
    """252 sequences of 8,192 tokens in 11.2 s are 184,320 tokens/s; the last paint of the last step counts."""
    bar = (
        "Epoch 0: : {0}%|███| {1}/50 [16:26<00:00, v_num=gjbq, reduced_train_loss={2}, global_step={3}.00, "
        "consumed_samples=12600.0, train_step_timing in s={4}]"
    )
    bars = [bar.format(2 * at, at + 1, round(12 - at / 10, 2), at, 13.0) for at in range(49)]
    bars += [bar.format(100, 50, 7.1, 49, seconds) for seconds in (99.0, 11.2)]
    file = tmp_path / "log-nemo_llama3.1_405b_576_48123.out"
    file.write_text("GSW: MODEL=llama3.1\n" + "\r".join(bars) + "\n")
    (one,) = documents(home, str(file), "-w", "llama3.1@24.11", *"-s 405b --gpu h100 -d fp8 --scale 576".split())
    assert (one["step_time_s"], one["median_step_time_s"], one["steps_done"]) == (11.2, 13.0, 50)
    assert one["result"]["tokens_per_s"] == pytest.approx(184320)
    assert (one["verdict"]["result"], one["verdict"]["ratio"]) == ("PASS", pytest.approx(11.24 / 11.2))
    assert one["result"]["loss"]["words"] == "falls: 12 to 7.1"


def test_a_log_of_megatron_bridge(home: Path, tmp_path: Path) -> None:
    """Of its own last line: 20.1 s; the TFLOPS that it wrote, without the first five: 505 to 509, mean 507."""
    line = (
        "Step Time : 20s GPU utilization: {tflops}MODEL_TFLOP/s/GPU\n [2025-12-19 10:49:15] iteration {at:8d}/"
        "      10 | consumed samples: 128 | elapsed time per iteration (ms): {ms} | lm loss: 1.2E+01 |\n"
    )
    file = tmp_path / "log-a.t_7_0.out"
    text = "".join(line.format(at=at, tflops=499 + at, ms=20100 if at == 10 else 20000) for at in range(1, 11))
    file.write_text(text)
    (one,) = documents(home, str(file))
    assert (one["step_time_s"], one["median_step_time_s"], one["steps_done"], one["steps_total"]) == (
        20.1,
        20.0,
        10,
        10,
    )
    assert one["result"]["logged_tflops_per_gpu"]["mean"] == 507
    assert one["result"]["steady"]["mean"] == pytest.approx(20.02)


def test_a_person_says_what_a_log_has_trained(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "log-a.t_1_0.out"
    file.write_text(log())
    (one,) = documents(home, str(file), *FLAGS)
    assert (one["verdict"]["result"], one["verdict"]["ratio"]) == ("PASS", pytest.approx(0.99))
    assert one["result"]["tokens_per_s"] == 524288
    file.write_text(log(last_s=3.0))
    assert documents(home, str(file), *FLAGS, code=3)[0]["verdict"]["result"] == "FAIL"
    file.write_text(log(steps=20, last_s=3.0))
    (going,) = documents(home, str(file), *FLAGS)
    assert (going["step_time_s"], going["steps_done"]) == (None, 20)
    assert "So far" in going["verdict"]["reasons"][0]
    assert "scale" in verbs.run(("results", str(file), "-w", "nemotron4"), verbs.environment(home)).stderr


@pytest.mark.parametrize("rule", ["recipe", "llmb-run", "parse_train_timing"])
@pytest.mark.parametrize("reads", [False, True], ids=["not opened", "broken off"])
def test_a_log_that_cannot_be_read_hides_no_other(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, *, reads: bool
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for job in (1, 2, 3):
        (folder / f"log-a.t_{job}_0.out").write_text(log())
    opened = Path.open

    class BreaksOff(io.FileIO):
        def readinto(self, _: object) -> int:
            raise OSError(errno.EIO, "Input/output error")

    def open_or_fail(file: Path, *words: Any, **more: Any) -> Any:
        if file.name != "log-a.t_2_0.out":
            return opened(file, *words, **more)
        if reads:
            return io.BufferedReader(BreaksOff(file))
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(Path, "open", open_or_fail)
    done = verbs.run(("results", str(folder), "--json", "--rule", rule), verbs.environment(home))
    assert done.returncode == 2
    assert [Path(one["id"]).name for one in json.loads(done.stdout)] == ["log-a.t_1_0.out", "log-a.t_3_0.out"]
    why = "Input/output error" if reads else "Permission denied"
    assert done.stderr == f"llmb-tui: {folder}/log-a.t_2_0.out cannot be read. {why}.\n"
    alone = verbs.run(("results", f"{folder}/log-a.t_2_0.out", "--rule", rule), verbs.environment(home))
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "name another log." in alone.stderr


def test_a_long_run_is_as_its_log_is(home: Path, tmp_path: Path) -> None:
    """Charts of it leave out steps."""
    text = "model\n" + "".join(LINE.format(at, 9.0, 1.9 if at < 3000 else 2.1, 9999) for at in range(10_000))
    remember(home, "long", text)
    (tmp_path / "log.out").write_text(text)
    (run,), (log_alone,) = documents(home, "long", code=3), documents(home, str(tmp_path / "log.out"))
    assert run["result"]["steady"] == log_alone["result"]["steady"]
    assert run["result"]["steady"]["count"] == 9_995


def test_a_path_that_is_mistyped_is_called_none(home: Path) -> None:
    done = verbs.run(("results", "/nowhere/log.out"), verbs.environment(home))
    assert (done.returncode, done.stderr) == (
        1,
        "llmb-tui: There is no /nowhere/log.out.\nName a log, or a folder of logs.\n",
    )


def test_what_cannot_be_read_beside_a_log_hides_no_log(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "a.out").write_text(log())
    (folder / "llmb-config_12.yaml").write_text(CONFIG)
    opened = Path.open

    def open_(path: Path, *words: Any, **more: Any) -> Any:
        if path.name.startswith("llmb-config"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *words, **more)

    monkeypatch.setattr(Path, "open", open_)
    (one,) = documents(home, str(folder))
    assert one["steps_done"] == 50


@pytest.mark.parametrize("rule", ["recipe", "llmb-run", "parse_train_timing"])
def test_a_log_on_a_cluster_that_cannot_be_read_is_none_without_steps(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """It is gone before its lines are read, which is said in the same word as of one that may not be read."""
    places = UserPaths(home / "config", home / "state")
    near = SlurmProfile("near", "localhost", "acct", "batch", "/lustre", transport="local")
    Services(places).clusters.save(near)
    folder = tmp_path / "logs"
    folder.mkdir()
    file = folder / "log-a.t_2_0.out"

    def gone(session: Session, script: str, *arguments: Any, **options: Any) -> list[tuple[str, str, str]]:
        if script == remote_text("progress_lines.sh"):
            file.unlink()
        return ask_cluster(session, script, *arguments, **options)

    monkeypatch.setattr("llmb_tui.watch.find_logs.ask", gone)
    for job in (1, 2, 3):
        (folder / f"log-a.t_{job}_0.out").write_text(log())
    done = verbs.run(("results", f"near:{folder}", "--rule", rule, "--json"), verbs.environment(home))
    assert done.returncode == 2
    assert [one["id"] for one in json.loads(done.stdout)] == [f"near:{folder}/log-a.t_{job}_0.out" for job in (1, 3)]
    why = "Permission denied, or the file was removed."
    assert f"llmb-tui: near:{file} cannot be read. {why}\n" in done.stderr
    file.write_text(log())
    alone = verbs.run(("results", f"near:{file}", "--rule", rule), verbs.environment(home))
    assert (alone.returncode, alone.stdout) == (1, "")
    assert why in alone.stderr


@pytest.mark.parametrize("rule", ["recipe", "llmb-run", "parse_train_timing"])
@pytest.mark.parametrize("at", ["", "near:"])
def test_a_folder_that_may_not_be_read_is_not_empty(home: Path, tmp_path: Path, at: str, rule: str) -> None:
    near = SlurmProfile("near", "localhost", "acct", "batch", "/lustre", transport="local")
    Services(UserPaths(home / "config", home / "state")).clusters.save(near)
    folder = tmp_path / "logs"
    for name in ("closed", "open"):
        (folder / name).mkdir(parents=True)
        (folder / name / "log-a.t_1_0.out").write_text(log())
    words = (f"{at}{folder}", "--json", "--rule", rule)
    with not_root():
        (folder / "closed").chmod(0)
        done = verbs.run(("results", *words), verbs.environment(home))
        assert done.returncode == 2
        assert [one["id"] for one in json.loads(done.stdout)] == [f"{at}{folder}/open/log-a.t_1_0.out"]
        (said,) = (
            line for line in done.stderr.splitlines() if line.endswith(("ermission denied", "ermission denied."))
        )
        assert said.startswith(f"llmb-tui: {at}")
        assert f"{folder}/closed" in said
        (folder / "closed").chmod(0o755)
        assert len(documents(home, *words)) == 2
        folder.chmod(0)
        done = verbs.run(("results", *words), verbs.environment(home))
        folder.chmod(0o755)
    assert done.returncode == (1 if at else 2)
    assert f"{folder}" in json.loads(done.stdout)["error"]["what"]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """As llmb-run leaves it: the log of two starts, NeMo-Run's batch output, and what it wrote of the run."""
    task = tmp_path / f"llmb/workloads/pretrain_nemotron4-340b/experiments/{TASK}/{TASK}_1767/{TASK}"
    task.mkdir(parents=True)
    name = f"research-research.{TASK}_48123"
    (task / "llmb-config_48123.yaml").write_text(CONFIG)
    (task / f"log-{name}_0.out").write_text(log(30, 30, steps=20))
    (task / f"log-{name}_1.out").write_text(log(20, 99))
    (task / f"sbatch_{name}.out").write_text("HF_TOKEN=hf_secret\n")
    return tmp_path / "llmb" / "workloads"


def test_what_llmb_run_was_told_to_change_is_named(home: Path, experiment: Path) -> None:
    (file,) = experiment.rglob("llmb-config_48123.yaml")
    changed = CONFIG.replace("env_overrides: {}", "env_overrides: {NCCL_X: 1}")
    file.write_text(changed.replace("model_overrides: {}", "model_overrides: {layers: 9}"))
    (one,) = documents(home, str(experiment))
    said = " ".join(one["verdict"]["reasons"])
    assert "started with layers changed" in said
    assert "behind the expected step time: NCCL_X changed." in said


def test_a_folder_of_llmb_run_is_judged_by_its_own_recipe(home: Path, experiment: Path) -> None:
    """The mean of iterations 35 to 44 is 20 s, whatever the last step took; 64 sequences of 4,096 tokens in it."""
    (one,) = documents(home, str(experiment))
    assert (one["selection"]["workload"], one["selection"]["gpu"], one["selection"]["scale"]) == (
        "nemotron4-340b", "gb200", 256,
    )  # fmt: skip
    assert (one["procedure"], one["job_ids"], one["rule"]) == ("llmb", ["48123"], "mean of iterations 35–44")
    assert (one["step_time_s"], one["verdict"]["ratio"]) == (
        20,
        pytest.approx(one["result"]["estimate"]["step_time_s"] / 20),
    )
    assert one["result"]["steady"]["count"] == 10
    assert one["result"]["tokens_per_s"] == pytest.approx(64 * 4096 / 20)
    assert one["result"]["restarts"] == 1
    assert one["result"]["earlier_logs"][0].endswith("_48123_0.out")


def test_the_same_folder_on_a_cluster(home: Path, experiment: Path) -> None:
    places = UserPaths(home / "config", home / "state")
    near = SlurmProfile("near", "localhost", "acct", "batch", "/lustre", transport="local")
    Services(places).clusters.save(near)
    (here,), (there,) = documents(home, str(experiment)), documents(home, f"near:{experiment}")
    assert there["id"] == f"near:{here['id']}"
    for one in (here, there):
        one["id"], one["result"]["earlier_logs"] = "", len(one["result"]["earlier_logs"])
    assert there == here
    for rule in ("parse_train_timing", "llmb-run"):
        mine, theirs = (documents(home, f"{at}{experiment}", "--rule", rule) for at in ("", "near:"))
        assert [one["result"]["upstream"] for one in mine] == [one["result"]["upstream"] for one in theirs]
    (file,) = documents(home, f"near:{next(experiment.rglob('log-*_0.out'))}")
    assert (file["steps_done"], file["procedure"]) == (20, "llmb")
    missing = verbs.run(("results", "near:/nowhere", "--json"), verbs.environment(home))
    assert missing.returncode == 1
    assert "no such file" in missing.stderr
    assert verbs.run(("results", "nowhere:/x"), verbs.environment(home)).returncode == 1


def test_a_run_of_a_colleague_by_the_direct_procedure(home: Path, tmp_path: Path) -> None:
    """Its folder holds the plan; here and on the cluster, by an absolute path and by one from the home directory."""
    made = plan(CATALOG, NEMOTRON)
    task = tmp_path / "task"
    (task / "configs").mkdir(parents=True)
    (task / "configs" / "plan.json").write_text(json.dumps(document(made) | {"steps": made.steps}))
    (task / "log-acct-acct.t_7_0.out").write_text(log())
    Services(UserPaths(home / "config", home / "state")).clusters.save(
        SlurmProfile("near", "localhost", "acct", "batch", "/lustre", transport="local")
    )
    for where in (
        str(task),
        str(task / "log-acct-acct.t_7_0.out"),
        f"near:{task}",
        f"near:{os.path.relpath(task, home)}",
    ):
        (one,) = documents(home, where)
        assert (one["procedure"], one["verdict"]["result"], one["result"]["tokens_per_s"]) == ("direct", "PASS", 524288)
    (task / "configs" / "plan.json").write_text("{}")
    (one,) = documents(home, str(task))
    assert (one["selection"], one["procedure"], one["step_time_s"]) == (None, None, 2.0)
    assert "cannot be used: It is not a plan" in one["verdict"]["reasons"][0]


def test_by_the_rules_of_nvidias_own_tools(home: Path, experiment: Path) -> None:
    (file,) = documents(
        home, str(experiment), "--rule", "parse_train_timing"
    )  # the first start made no step that counts
    (job,) = documents(home, str(experiment), "--rule", "llmb-run")
    assert [one["result"]["upstream"]["status"] for one in (file, job)] == ["Success", "success"]
    assert [one["result"]["upstream"]["step_time_mean_s"] for one in (file, job)] == [20, 20]
    headings, row = ask(home, str(experiment), "--rule", "llmb-run").splitlines()
    assert headings.split()[:3] == ["run", "rule", "status"]
    assert row.split()[1:4] == ["llmb-run", "success", "20"]


def test_a_run_by_the_rules_of_nvidias_own_tools(home: Path) -> None:
    remember(home, "mine", log())
    (one,) = documents(home, "mine", "--rule", "llmb-run")
    assert one["result"]["upstream"]["step_time_mean_s"] == pytest.approx(1.98)
    assert one["step_time_s"] == 2.0, "the keys of a run stay those of its recipe"
    (bars,) = documents(home, "mine", "--rule", "parse_train_timing")
    assert bars["result"]["upstream"]["status"] == "Success"


def test_a_table_for_a_file_has_every_number(home: Path) -> None:
    remember(home, "a", log())
    remember(home, "b", log(last_s=2.023456))
    rows = list(csv.DictReader(io.StringIO(ask(home, "a", "b", "--format", "csv"))))
    assert [row["step_time_s"] for row in rows] == ["2.0", "2.023456"]
    assert rows[0]["tokens_per_s"] == "524288.0"
    markdown = ask(home, "a", "b", "--format", "markdown").splitlines()
    assert len(markdown) == 4
    assert markdown[0].startswith("| run |")


def test_losses_are_held_against_the_same_configuration_alone(home: Path) -> None:
    remember(home, "first", log(), created_at=1.0)
    other = plan(CATALOG, replace(NEMOTRON, scale=128))
    services = Services(UserPaths(home / "config", home / "state"))
    services.runs.save(replace(make_run("other", job_state="COMPLETED", log_read=True), plan=other))
    (services.runs.folder("other") / "log").write_text(log())
    assert documents(home, "other")[0]["result"]["loss"]["against_first"] is None


def test_a_run_whose_log_cannot_be_read_hides_no_other(home: Path, tmp_path: Path) -> None:
    """Not even where it is the first of the configuration, against which the losses of all others are held."""
    remember(home, "first", log(), created_at=1.0)
    remember(home, "well", log(), created_at=2.0)
    file = tmp_path / "a.out"
    file.write_text(log())
    for closed in (home / "state" / "runs" / "first" / "log", file):
        closed.chmod(0)
    with not_root():
        for rule in ("recipe", "llmb-run"):
            (one,) = documents(home, "well", "--rule", rule)
            assert (one["step_time_s"], one["result"]["loss"]["against_first"]) == (2.0, None)
            several = ("results", "first", str(file), "well", "--json", "--rule", rule)
            done = verbs.run(several, verbs.environment(home))
            assert (done.returncode, [one["id"] for one in json.loads(done.stdout)]) == (2, ["well"])
            assert done.stderr.count("cannot be read.\nPermission denied.") == 2
        ask(home, "first", code=1)
        assert verbs.run(("report", "well"), verbs.environment(home)).returncode == 0


def test_the_id_of_a_run_means_it_also_where_its_files_were_fetched_to(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fetch RUN` puts them into ./RUN, where more than one log may be."""
    remember(home, "slow1", log(last_s=3.0))
    monkeypatch.chdir(tmp_path)
    for name in ("slow1", "notarun"):
        Path(name).mkdir()
        Path(name, "log-acct-acct.t_7_0.out").write_text(log(last_s=3.0))
    (one,) = documents(home, "slow1", code=3)
    assert (one["id"], one["verdict"]["result"]) == ("slow1", "FAIL")
    for name in ("./slow1", "slow1/", "notarun"):
        (one,) = documents(home, name)
        assert one["id"] == f"{Path(name)}/log-acct-acct.t_7_0.out"


def test_a_suite_stands_for_its_runs(home: Path) -> None:
    suite = make_suite("mine", "eos", [(NEMOTRON, "direct")] * 3)
    rows = tuple(replace(row, run_id=f"row{at}") for at, row in enumerate(suite.rows))
    Services(UserPaths(home / "config", home / "state")).suites.save(replace(suite, id="s251123080000aaaa", rows=rows))
    remember(home, "row0", log())
    remember(home, "row1", log(last_s=2.02))
    found = documents(home, "s251123080000aaaa")  # the third was not submitted
    assert [(one["id"], one["step_time_s"]) for one in found] == [("row0", 2.0), ("row1", 2.02)]
