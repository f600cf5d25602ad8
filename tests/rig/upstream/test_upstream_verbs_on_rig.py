"""Each recipe by NVIDIA's scripts, from an empty directory to a verdict, by the verbs.

Real are the login node, Slurm, git, venv, pip and NeMo-Run; stand-ins are what they fetch, the containers and the
training (`tests/recipes`, `tests/rig`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from llmb_tui.launch.run import Run
from llmb_tui.plan.selection import Selection
from tests.kit.reasons import OUT_OF_GPU_MEMORY, training_reason
from tests.kit.waiting import until
from tests.recipes.outside import Outside
from tests.rig.upstream.conftest import MakeOperator
from tests.rig.upstream.upstream_operator import Operator, remote_log, spec_of

H100 = ("--gpu", "h100")
NEMOTRON = ("-w", "nemotron4@25.04", "-s", "15b", *H100, "-d", "fp8", "--scale", "16")
LLAMA = ("-w", "llama3.1@25.04", "-s", "8b", *H100, "-d", "bf16", "--scale", "8")
LLAMA_HYDRA = ("-w", "llama3.1@24.11", "-s", "405b", *H100, "-d", "fp8", "--scale", "32")
GROK = ("-w", "grok1@25.02", "-s", "314b", *H100, "-d", "bf16", "--scale", "8")
NEMOTRON_340B = ("-w", "nemotron4-340b@25.12", "-s", "340b", *H100, "-d", "fp8", "--scale", "16")


def install(operator: Operator, selection: tuple[str, ...]) -> None:
    operator.set_pace(selection)
    operator.preflight(selection)
    operator.installed(selection)


def passes(operator: Operator, run: Run) -> None:
    """The run is watched to its end, and everything says the same of it."""
    final = operator.document("watch", run.id)
    assert (final["state"], final["steps_done"], final["verdict"]["result"]) == ("done", 50, "PASS"), final
    assert final["procedure"] == "upstream"
    (result,) = operator.document("results", run.id)
    assert result.pop("result")["steady"]["count"] > 0
    assert result == final
    assert operator.document("jobs")[0] == {**final, "note": "", "tags": []}
    assert operator.document("watch", run.id, "--once") == final
    assert operator.copy(run).read_bytes() == remote_log(run).read_bytes()
    assert "train_step_timing in s" in operator.verb("logs", run.id)


def test_nemotron4_of_25_04_that_is_started_again(make_operator: MakeOperator) -> None:
    """Halfway Slurm starts the job again: that has a log of its own, and counts."""
    operator = make_operator()
    install(operator, NEMOTRON)
    rig = operator.rig
    with rig.knob("faults/hang-at-step", "10"):
        run = operator.submit(NEMOTRON)
        watched = operator.watched(run)
        watched.wait_for(lambda state: state.progress.steps_done == 10)
        operator.requeue(run)
    watched.wait_for(lambda state: state.log_name == "log.1" and state.progress.steps_done)
    final = watched.end()
    assert (final.stage, final.verdict and final.verdict.result, final.progress.steps_done) == ("done", "PASS", 50)
    assert final.job is not None
    assert final.job.restarts == 1
    for restart in (0, 1):
        assert operator.copy(run, restart).read_bytes() == remote_log(run, restart).read_bytes()
    assert b"iteration 9/49 " in operator.copy(run, 0).read_bytes()
    assert b"iteration 10/49 " not in operator.copy(run, 0).read_bytes()
    (result,) = operator.document("results", run.id)
    assert (result["procedure"], result["verdict"]["result"], result["job_ids"]) == ("upstream", "PASS", [*run.job_ids])


def test_llama31_of_25_04_and_its_profile(make_operator: MakeOperator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its launch script would start the plain benchmark beside the profile; that is not wanted, and not done.

    Where it makes three jobs of one launch all the same, all are the run's, and the plain benchmark is watched.
    """
    operator = make_operator()
    operator.give_token(monkeypatch)
    install(operator, LLAMA)
    passes(operator, operator.submit(LLAMA))

    run = operator.submit((*LLAMA, "--profile"))
    assert len(run.job_ids) == 1
    assert remote_log(run).name.startswith("log-llmbench-llmbench.pretrain_llama3.1_8b_bf16_8_nsys_")
    final = operator.document("watch", run.id)
    assert (final["state"], final["steps_done"], final["verdict"]["result"]) == ("done", 25, "WARN")
    assert "profiled" in " ".join(final["verdict"]["reasons"])
    assert operator.copy(run).read_bytes() == remote_log(run).read_bytes()
    output = (Path(spec_of(run).folder) / "output").read_text() + operator.verb("logs", run.id)
    kept = [path.read_text() for path in operator.places.state.rglob("*") if path.is_file()]
    assert not any(operator.outside.hub_token in text for text in (output, *kept))

    selection = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8)
    run = operator.launch(selection, "ENABLE_PROFILE=true", "ENABLE_NCCLTRACE=true")
    task = "llmbench-llmbench.pretrain_llama3.1_8b_bf16_8"
    names = [operator.rig.as_operator(f"squeue -h -t all -o %j -j {job}").stdout.strip() for job in run.job_ids]
    assert (run.submission, run.note) == ("submitted", "")
    assert (sorted(names[:-1]), names[-1]) == ([f"{task}_nccltrace", f"{task}_nsys"], task)
    final = operator.document("watch", run.id)
    assert (final["state"], final["steps_done"], final["job_ids"]) == ("done", 25, [*run.job_ids])
    assert operator.copy(run).read_bytes() == remote_log(run).read_bytes()


def test_llama31_of_24_11_where_srun_is_older_than_23_02(
    make_operator: MakeOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launch script says where the log belongs, and such an srun does not hear it; the next run is on a newer."""
    operator = make_operator()
    operator.give_token(monkeypatch)
    install(operator, LLAMA_HYDRA)
    root = Path(operator.install) / "published" / "llama3.1-24.11"
    with operator.rig.knob("faults/old-srun"):
        run = operator.submit(LLAMA_HYDRA)
        assert remote_log(run) == root / f"slurm-{run.job_ids[0]}.out"
        passes(operator, run)
    run = operator.submit(LLAMA_HYDRA)
    results = root / "results/24.11/fp8/405b/32"
    assert remote_log(run) == results / f"log-nemo_llama3.1_405b_32_{run.job_ids[0]}.out"
    assert spec_of(run).results == str(results)
    passes(operator, run)


def test_grok1_of_25_02_that_passes_that_fails_and_that_is_cancelled(make_operator: MakeOperator) -> None:
    operator = make_operator()
    install(operator, GROK)
    run = operator.submit(GROK)
    results = Path(operator.install) / "published/grok1-25.02/results/25.02/bf16/314b/8"
    assert remote_log(run) == results / f"log-nemo_grok1_314b_8_{run.job_ids[0]}.out"
    passes(operator, run)
    check_reason_of_failure(operator)
    check_cancelled_run(operator)


def check_reason_of_failure(operator: Operator) -> None:
    """That does not stand in the log of a training by Hydra, but in the file beside it."""
    with operator.rig.knob("faults/fail-at-step", "7"):
        run = operator.submit(GROK)
        final = operator.watched(run).end()
    assert (final.stage, final.progress.steps_done, final.verdict) == ("failed", 7, None)
    assert b"out of memory" not in operator.copy(run).read_bytes()
    assert final.progress.failure is not None
    assert "torch.OutOfMemoryError: CUDA out of memory." in final.progress.failure.line
    assert final.why_failed == training_reason(OUT_OF_GPU_MEMORY)
    lines = operator.verb("watch", run.id, code=4).splitlines()
    assert any(line.endswith(training_reason(OUT_OF_GPU_MEMORY)) for line in lines)
    assert lines[-1] == f"log: {operator.copy(run)}"
    (result,) = operator.document("results", run.id, code=4)
    assert (result["state"], result["verdict"]["reasons"][-1]) == ("failed", training_reason(OUT_OF_GPU_MEMORY))


def check_cancelled_run(operator: Operator) -> None:
    with operator.rig.knob("faults/hang-at-step", "20"):
        run = operator.submit(GROK)
        # srun passes a bar on in pieces of 1 KB, which are some steps.
        until(lambda: operator.document("watch", run.id, "--once")["steps_done"], "some steps are done")
        assert operator.document("cancel", run.id, "--yes") == {"id": run.id, "cancelled": [*run.job_ids]}
        final = operator.document("watch", run.id, code=4)
    assert (final["state"], final["verdict"]["result"]) == ("cancelled", None)
    assert 0 < final["steps_done"] <= 20


def small_340b(outside: Outside, folder: Path) -> Path:
    """The presets, with a row of 16 GPUs, and a result for it, made up: the rig has 32 H100, the smallest real row 256.

    The launch script takes any number of GPUs; what it trains has another layout than the row, which no log shows.
    """
    shutil.copytree(outside.presets, folder)
    preset = folder / "nemotron4-340b-25.12.toml"
    row = '[256, 4096, 96, 8, 8, 1, "NA", 4, 12, 1, 64, 16],\n'
    small = '[16, 4096, 96, 8, 2, 1, "NA", 1, 12, 1, 4, 4],\n'
    result = """
[[results]]
size = "340b"
gpu = "h100"
dtype = "fp8"
scaling = "weak"
source = "made up for a test"
gpus = [16]
step_time_s = [3.5]
tokens_per_s = [4681]
mfu_pct = [40.0]
days_per_1t_tokens = ["NA"]
"""
    text = preset.read_text()
    assert row in text
    preset.write_text(text.replace(row, f"    {small}{row}") + result)
    return folder


def test_nemotron4_340b_of_25_12(
    make_operator: MakeOperator, outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of 16 GPUs is made up for it: see `small_340b`."""
    presets = small_340b(outside, tmp_path / "presets")
    operator = make_operator()
    for room in ("load", "kept"):
        monkeypatch.setattr(f"llmb_tui.catalog.{room}.builtin_dir", lambda: presets)
    install(operator, NEMOTRON_340B)
    run = operator.submit(NEMOTRON_340B)
    assert remote_log(run).is_relative_to(operator.install / "workloads/pretrain_nemotron4-340b/experiments")
    passes(operator, run)
    assert operator.document("results", run.id)[0]["rule"] == "mean of iterations 35–44"
