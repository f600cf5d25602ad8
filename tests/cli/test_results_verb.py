"""`results`: runs of this program, and logs of any training here or on a cluster. Expected values are calculated."""

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
    """Log of a training: steps take `seconds`, the last one `last_s`; the loss falls by 0.1 per step."""
    times = [seconds] * (steps - 1) + [last_s]
    lines = (LINE.format(step, round(loss - step / 10, 3), time, total - 1) for step, time in enumerate(times))
    return "model\n" + "".join(lines)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def ask(home: Path, *words: str, code: int = 0) -> str:
    result = verbs.run(("results", *words), verbs.environment(home))
    assert result.returncode == code, result.stderr
    return result.stdout


def documents(home: Path, *words: str, code: int = 0) -> list[dict[str, Any]]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found: list[dict[str, Any]] = json.loads(ask(home, *words, "--json", code=code), parse_constant=refuse)
    return found


def remember(home: Path, run_id: str, text: str, **changes: Any) -> None:
    services = Services(UserPaths(home / "config", home / "state"))
    run = make_run(run_id, job_state="COMPLETED", log_read=True, plan=plan(CATALOG, NEMOTRON), **changes)
    services.runs.save(run)
    (services.runs.folder(run_id) / "log").write_text(text)


def test_a_run_with_all_values_derived_from_its_step_time(home: Path) -> None:
    """256 sequences of 4,096 tokens in 2 s are 524,288 tokens/s; 3.85e14 FLOPs each on 64 GPUs 770 TFLOPS; of 1,979."""
    remember(home, "first", log(), created_at=1.0)
    remember(home, "second", log(loss=12.006) + SAVED, created_at=2.0)
    (run,) = documents(home, "second")
    result = run["result"]
    assert (run["step_time_s"], run["rule"]) == (2.0, "last step")
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
    printed = ask(home, "second")
    for words in (
        "524,288",
        "published        1.98 s",
        "checkpoint       save 4.389 s at iteration 50",
        "+0.085 % at iteration 49 compared with run first",
    ):
        assert words in printed


def test_a_loss_that_is_not_a_number_is_null_with_a_remark(home: Path) -> None:
    remember(home, "bad", log().replace("reduced_train_loss: 7.1 ", "reduced_train_loss: nan "))
    (run,) = documents(home, "bad")
    loss = run["result"]["loss"]
    assert (loss["last"], loss["falls"], loss["words"]) == (None, False, "1 step has a loss that is not a number")


def test_a_log_without_a_configuration_has_only_values_from_the_log(home: Path) -> None:
    (run,) = documents(home, str(GOLDEN / "nemo-2.4.0-flops.log"))
    result = run["result"]
    assert (run["selection"], run["verdict"]["result"], run["steps_done"], run["steps_total"]) == (None, None, 30, 30)
    assert "does not say which configuration" in run["verdict"]["reasons"][0]
    assert [result[name] for name in ("tokens_per_s", "tflops_per_gpu", "mfu_pct", "estimate")] == [None] * 4
    assert result["logged_tflops_per_gpu"]["count"] == 25
    assert documents(home, str(GOLDEN / "nemo-2.2.1-save.log"))[0]["result"]["checkpoints"][0]["kind"] == "save"


ODD = {
    "duration": SAVED.replace("4.389", "12.3.4"),
    "count": SAVED.replace("50 :", "9" * 5000 + " :"),
    "step": f"iteration {'9' * 5000}/49 iteration 36/{'9' * 5000} | train_step_timing in s: 2.0\n",
    "time": LINE.format(36, 9.0, "1e999", 49) * 2,
    "tflops": "".join(
        LINE.format(step, 9.0, 2.0, 49).replace(" | consumed", f" | TFLOPS_per_GPU: {tflops} | consumed")
        for step, tflops in ((49, 770), (49, 1e308), (49, 1e308))
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_number_in_one_log_does_not_break_any_verb(home: Path, odd: str) -> None:
    """Logs contain interleaved lines of ranks, and fragments of output of failing programs."""
    remember(home, "odd", log() + ODD[odd] + log()[6:].replace(" | consumed", " | TFLOPS_per_GPU: 1e308 | consumed"))
    remember(home, "well", log())
    for rule in ("recipe", "parse_train_timing", "llmb-run"):
        assert [run["id"] for run in documents(home, "odd", "well", "--rule", rule)] == ["odd", "well"]
    for words in (("report", "well", "odd"), ("compare", "odd", "well", "--json"), ("jobs", "--prune", "--yes")):
        result = verbs.run(words, verbs.environment(home))
        assert (result.returncode, "fault" in result.stderr) == (0, False), result.stderr
    assert not (home / "state" / "runs" / "odd" / "log").exists()
    assert not (home / "state" / "runs" / "well" / "log").exists()


def test_the_bar_of_a_hydra_recipe(home: Path, tmp_path: Path) -> None:
    """252 sequences of 8,192 tokens in 11.2 s are 184,320 tokens/s; the last paint of the last step counts."""
    bar = (
        "Epoch 0: : {0}%|███| {1}/50 [16:26<00:00, v_num=gjbq, reduced_train_loss={2}, global_step={3}.00, "
        "consumed_samples=12600.0, train_step_timing in s={4}]"
    )
    bars = [bar.format(2 * step, step + 1, round(12 - step / 10, 2), step, 13.0) for step in range(49)]
    bars += [bar.format(100, 50, 7.1, 49, seconds) for seconds in (99.0, 11.2)]
    file = tmp_path / "log-nemo_llama3.1_405b_576_48123.out"
    file.write_text("GSW: MODEL=llama3.1\n" + "\r".join(bars) + "\n")
    (run,) = documents(home, str(file), "-w", "llama3.1@24.11", *"-s 405b --gpu h100 -d fp8 --scale 576".split())
    assert (run["step_time_s"], run["median_step_time_s"], run["steps_done"]) == (11.2, 13.0, 50)
    assert run["result"]["tokens_per_s"] == pytest.approx(184320)
    assert (run["verdict"]["result"], run["verdict"]["ratio"]) == ("PASS", pytest.approx(11.24 / 11.2))
    assert run["result"]["loss"]["words"] == "falls: 12 to 7.1"


def test_a_log_of_megatron_bridge(home: Path, tmp_path: Path) -> None:
    """Its last line has 20.1 s; its TFLOPS without the first five are 505 to 509, with mean 507."""
    line = (
        "Step Time : 20s GPU utilization: {tflops}MODEL_TFLOP/s/GPU\n [2025-12-19 10:49:15] iteration {step:8d}/"
        "      10 | consumed samples: 128 | elapsed time per iteration (ms): {ms} | lm loss: 1.2E+01 |\n"
    )
    file = tmp_path / "log-a.t_7_0.out"
    text = "".join(
        line.format(step=step, tflops=499 + step, ms=20100 if step == 10 else 20000) for step in range(1, 11)
    )
    file.write_text(text)
    (run,) = documents(home, str(file))
    assert (run["step_time_s"], run["median_step_time_s"], run["steps_done"], run["steps_total"]) == (
        20.1,
        20.0,
        10,
        10,
    )
    assert run["result"]["logged_tflops_per_gpu"]["mean"] == 507
    assert run["result"]["steady"]["mean"] == pytest.approx(20.02)


def test_flags_describe_the_training_of_a_log(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "log-a.t_1_0.out"
    file.write_text(log())
    (run,) = documents(home, str(file), *FLAGS)
    assert (run["verdict"]["result"], run["verdict"]["ratio"]) == ("PASS", pytest.approx(0.99))
    assert run["result"]["tokens_per_s"] == 524288
    file.write_text(log(last_s=3.0))
    assert documents(home, str(file), *FLAGS, code=3)[0]["verdict"]["result"] == "FAIL"
    file.write_text(log(steps=20, last_s=3.0))
    (going,) = documents(home, str(file), *FLAGS)
    assert (going["step_time_s"], going["steps_done"]) == (None, 20)
    assert "So far" in going["verdict"]["reasons"][0]
    assert "scale" in verbs.run(("results", str(file), "-w", "nemotron4"), verbs.environment(home)).stderr


@pytest.mark.parametrize("rule", ["recipe", "llmb-run", "parse_train_timing"])
@pytest.mark.parametrize("reads", [False, True], ids=["not opened", "broken off"])
def test_an_unreadable_log_hides_no_other_log(
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
    result = verbs.run(("results", str(folder), "--json", "--rule", rule), verbs.environment(home))
    assert result.returncode == 2
    assert [Path(run["id"]).name for run in json.loads(result.stdout)] == ["log-a.t_1_0.out", "log-a.t_3_0.out"]
    why = "Input/output error" if reads else "Permission denied"
    assert result.stderr == f"llmb-tui: {folder}/log-a.t_2_0.out cannot be read. {why}.\n"
    alone = verbs.run(("results", f"{folder}/log-a.t_2_0.out", "--rule", rule), verbs.environment(home))
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "name another log." in alone.stderr


def test_a_long_run_has_every_step_of_its_log(home: Path, tmp_path: Path) -> None:
    """Only charts leave out steps."""
    text = "model\n" + "".join(LINE.format(step, 9.0, 1.9 if step < 3000 else 2.1, 9999) for step in range(10_000))
    remember(home, "long", text)
    (tmp_path / "log.out").write_text(text)
    (run,), (log_alone,) = documents(home, "long", code=3), documents(home, str(tmp_path / "log.out"))
    assert run["result"]["steady"] == log_alone["result"]["steady"]
    assert run["result"]["steady"]["count"] == 9_995


def test_a_mistyped_path_is_refused(home: Path) -> None:
    result = verbs.run(("results", "/nowhere/log.out"), verbs.environment(home))
    assert (result.returncode, result.stderr) == (
        1,
        "llmb-tui: /nowhere/log.out does not exist.\nName a log, or a folder of logs.\n",
    )


def test_an_unreadable_neighbour_hides_no_log(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    (run,) = documents(home, str(folder))
    assert run["steps_done"] == 50


@pytest.mark.parametrize("rule", ["recipe", "llmb-run", "parse_train_timing"])
def test_an_unreadable_log_on_a_cluster_is_not_a_log_without_steps(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """The log vanishes before its lines are read; the message is the same as without read permission."""
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
    result = verbs.run(("results", f"near:{folder}", "--rule", rule, "--json"), verbs.environment(home))
    assert result.returncode == 2
    assert [run["id"] for run in json.loads(result.stdout)] == [f"near:{folder}/log-a.t_{job}_0.out" for job in (1, 3)]
    why = "Permission denied, or the file was removed."
    assert f"llmb-tui: near:{file} cannot be read. {why}\n" in result.stderr
    file.write_text(log())
    alone = verbs.run(("results", f"near:{file}", "--rule", rule), verbs.environment(home))
    assert (alone.returncode, alone.stdout) == (1, "")
    assert why in alone.stderr


@pytest.mark.parametrize("rule", ["recipe", "llmb-run", "parse_train_timing"])
@pytest.mark.parametrize("prefix", ["", "near:"])
def test_an_unreadable_folder_is_not_reported_as_empty(home: Path, tmp_path: Path, prefix: str, rule: str) -> None:
    near = SlurmProfile("near", "localhost", "acct", "batch", "/lustre", transport="local")
    Services(UserPaths(home / "config", home / "state")).clusters.save(near)
    folder = tmp_path / "logs"
    for name in ("closed", "open"):
        (folder / name).mkdir(parents=True)
        (folder / name / "log-a.t_1_0.out").write_text(log())
    words = (f"{prefix}{folder}", "--json", "--rule", rule)
    with not_root():
        (folder / "closed").chmod(0)
        result = verbs.run(("results", *words), verbs.environment(home))
        assert result.returncode == 2
        assert [run["id"] for run in json.loads(result.stdout)] == [f"{prefix}{folder}/open/log-a.t_1_0.out"]
        (printed,) = (
            line for line in result.stderr.splitlines() if line.endswith(("ermission denied", "ermission denied."))
        )
        assert printed.startswith(f"llmb-tui: {prefix}")
        assert f"{folder}/closed" in printed
        (folder / "closed").chmod(0o755)
        assert len(documents(home, *words)) == 2
        folder.chmod(0)
        result = verbs.run(("results", *words), verbs.environment(home))
        folder.chmod(0o755)
    assert result.returncode == (1 if prefix else 2)
    assert f"{folder}" in json.loads(result.stdout)["error"]["what"]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Folder of llmb-run: the log of two starts, NeMo-Run's batch output, and the run's configuration."""
    task = tmp_path / f"llmb/workloads/pretrain_nemotron4-340b/experiments/{TASK}/{TASK}_1767/{TASK}"
    task.mkdir(parents=True)
    name = f"research-research.{TASK}_48123"
    (task / "llmb-config_48123.yaml").write_text(CONFIG)
    (task / f"log-{name}_0.out").write_text(log(30, 30, steps=20))
    (task / f"log-{name}_1.out").write_text(log(20, 99))
    (task / f"sbatch_{name}.out").write_text("HF_TOKEN=hf_secret\n")
    return tmp_path / "llmb" / "workloads"


def test_changes_by_llmb_run_are_named(home: Path, experiment: Path) -> None:
    (file,) = experiment.rglob("llmb-config_48123.yaml")
    changed = CONFIG.replace("env_overrides: {}", "env_overrides: {NCCL_X: 1}")
    file.write_text(changed.replace("model_overrides: {}", "model_overrides: {layers: 9}"))
    (run,) = documents(home, str(experiment))
    printed = " ".join(run["verdict"]["reasons"])
    assert "started with layers changed" in printed
    assert "behind the expected step time: NCCL_X changed." in printed


def test_a_folder_of_llmb_run_is_judged_by_its_recipe(home: Path, experiment: Path) -> None:
    """The mean of iterations 35 to 44 is 20 s, whatever the last step took; a step has 64 sequences of 4,096 tokens."""
    (run,) = documents(home, str(experiment))
    assert (run["selection"]["workload"], run["selection"]["gpu"], run["selection"]["scale"]) == (
        "nemotron4-340b", "gb200", 256,
    )  # fmt: skip
    assert (run["procedure"], run["job_ids"], run["rule"]) == ("llmb", ["48123"], "mean of iterations 35–44")
    assert (run["step_time_s"], run["verdict"]["ratio"]) == (
        20,
        pytest.approx(run["result"]["estimate"]["step_time_s"] / 20),
    )
    assert run["result"]["steady"]["count"] == 10
    assert run["result"]["tokens_per_s"] == pytest.approx(64 * 4096 / 20)
    assert run["result"]["restarts"] == 1
    assert run["result"]["earlier_logs"][0].endswith("_48123_0.out")


def test_the_same_folder_on_a_cluster(home: Path, experiment: Path) -> None:
    places = UserPaths(home / "config", home / "state")
    near = SlurmProfile("near", "localhost", "acct", "batch", "/lustre", transport="local")
    Services(places).clusters.save(near)
    (here,), (there,) = documents(home, str(experiment)), documents(home, f"near:{experiment}")
    assert there["id"] == f"near:{here['id']}"
    for run in (here, there):
        run["id"], run["result"]["earlier_logs"] = "", len(run["result"]["earlier_logs"])
    assert there == here
    for rule in ("parse_train_timing", "llmb-run"):
        mine, theirs = (documents(home, f"{prefix}{experiment}", "--rule", rule) for prefix in ("", "near:"))
        assert [run["result"]["upstream"] for run in mine] == [run["result"]["upstream"] for run in theirs]
    (file,) = documents(home, f"near:{next(experiment.rglob('log-*_0.out'))}")
    assert (file["steps_done"], file["procedure"]) == (20, "llmb")
    missing = verbs.run(("results", "near:/nowhere", "--json"), verbs.environment(home))
    assert missing.returncode == 1
    assert "no such file" in missing.stderr
    assert verbs.run(("results", "nowhere:/x"), verbs.environment(home)).returncode == 1


def test_a_run_of_another_user_by_our_script(home: Path, tmp_path: Path) -> None:
    """The plan is in its folder; here and on the cluster, by an absolute path and by one from the home directory."""
    run_plan = plan(CATALOG, NEMOTRON)
    task = tmp_path / "task"
    (task / "configs").mkdir(parents=True)
    (task / "configs" / "plan.json").write_text(json.dumps(document(run_plan) | {"steps": run_plan.steps}))
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
        (run,) = documents(home, where)
        assert (run["procedure"], run["verdict"]["result"], run["result"]["tokens_per_s"]) == ("direct", "PASS", 524288)
    (task / "configs" / "plan.json").write_text("{}")
    (run,) = documents(home, str(task))
    assert (run["selection"], run["procedure"], run["step_time_s"]) == (None, None, 2.0)
    assert "cannot be used: It is not a plan" in run["verdict"]["reasons"][0]


def test_logs_by_the_rules_of_nvidias_tools(home: Path, experiment: Path) -> None:
    (file,) = documents(home, str(experiment), "--rule", "parse_train_timing")  # the first start made no valid step
    (job,) = documents(home, str(experiment), "--rule", "llmb-run")
    assert [run["result"]["upstream"]["status"] for run in (file, job)] == ["Success", "success"]
    assert [run["result"]["upstream"]["step_time_mean_s"] for run in (file, job)] == [20, 20]
    headings, row = ask(home, str(experiment), "--rule", "llmb-run").splitlines()
    assert headings.split()[:3] == ["run", "rule", "status"]
    assert row.split()[1:4] == ["llmb-run", "success", "20"]


def test_a_run_by_the_rules_of_nvidias_tools(home: Path) -> None:
    remember(home, "mine", log())
    (run,) = documents(home, "mine", "--rule", "llmb-run")
    assert run["result"]["upstream"]["step_time_mean_s"] == pytest.approx(1.98)
    assert run["step_time_s"] == 2.0, "a run keeps the keys of its recipe"
    (bars,) = documents(home, "mine", "--rule", "parse_train_timing")
    assert bars["result"]["upstream"]["status"] == "Success"


def test_the_csv_table_has_every_number(home: Path) -> None:
    remember(home, "a", log())
    remember(home, "b", log(last_s=2.023456))
    rows = list(csv.DictReader(io.StringIO(ask(home, "a", "b", "--format", "csv"))))
    assert [row["step_time_s"] for row in rows] == ["2.0", "2.023456"]
    assert rows[0]["tokens_per_s"] == "524288.0"
    markdown = ask(home, "a", "b", "--format", "markdown").splitlines()
    assert len(markdown) == 4
    assert markdown[0].startswith("| run |")


def test_losses_are_compared_only_within_a_configuration(home: Path) -> None:
    remember(home, "first", log(), created_at=1.0)
    run_plan = plan(CATALOG, replace(NEMOTRON, scale=128))
    services = Services(UserPaths(home / "config", home / "state"))
    services.runs.save(replace(make_run("other", job_state="COMPLETED", log_read=True), plan=run_plan))
    (services.runs.folder("other") / "log").write_text(log())
    assert documents(home, "other")[0]["result"]["loss"]["against_first"] is None


def test_a_run_with_an_unreadable_log_hides_no_other_run(home: Path, tmp_path: Path) -> None:
    """Also if it is the first of its configuration, with whose losses all others are compared."""
    remember(home, "first", log(), created_at=1.0)
    remember(home, "well", log(), created_at=2.0)
    file = tmp_path / "a.out"
    file.write_text(log())
    for closed in (home / "state" / "runs" / "first" / "log", file):
        closed.chmod(0)
    with not_root():
        for rule in ("recipe", "llmb-run"):
            (run,) = documents(home, "well", "--rule", rule)
            assert (run["step_time_s"], run["result"]["loss"]["against_first"]) == (2.0, None)
            several = ("results", "first", str(file), "well", "--json", "--rule", rule)
            result = verbs.run(several, verbs.environment(home))
            assert (result.returncode, [run["id"] for run in json.loads(result.stdout)]) == (2, ["well"])
            assert result.stderr.count("cannot be read.\nPermission denied.") == 2
        ask(home, "first", code=1)
        assert verbs.run(("report", "well"), verbs.environment(home)).returncode == 0


def test_the_id_of_a_run_takes_precedence_over_a_folder_of_that_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fetch RUN` writes into ./RUN, which may have more than one log."""
    remember(home, "slow1", log(last_s=3.0))
    monkeypatch.chdir(tmp_path)
    for name in ("slow1", "notarun"):
        Path(name).mkdir()
        Path(name, "log-acct-acct.t_7_0.out").write_text(log(last_s=3.0))
    (run,) = documents(home, "slow1", code=3)
    assert (run["id"], run["verdict"]["result"]) == ("slow1", "FAIL")
    for name in ("./slow1", "slow1/", "notarun"):
        (run,) = documents(home, name)
        assert run["id"] == f"{Path(name)}/log-acct-acct.t_7_0.out"


def test_the_results_of_a_suite_are_those_of_its_runs(home: Path) -> None:
    suite = make_suite("mine", "eos", [(NEMOTRON, "direct")] * 3)
    rows = tuple(replace(row, run_id=f"row{index}") for index, row in enumerate(suite.rows))
    Services(UserPaths(home / "config", home / "state")).suites.save(replace(suite, id="s251123080000aaaa", rows=rows))
    remember(home, "row0", log())
    remember(home, "row1", log(last_s=2.02))
    result = documents(home, "s251123080000aaaa")  # the third was not submitted
    assert [(run["id"], run["step_time_s"]) for run in result] == [("row0", 2.0), ("row1", 2.02)]
