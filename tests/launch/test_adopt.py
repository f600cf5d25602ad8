"""Runs of NVIDIA's llmb-run: read from the file next to their logs, planned for their release, opened once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import LlmbError
from llmb_tui.launch.llmb.import_run import ImportableRun, import_run, importable_runs
from llmb_tui.launch.llmb.llmb_run import LlmbRun
from llmb_tui.launch.llmb.run import run_of
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.events import LogRead
from llmb_tui.watch.progress import fold
from llmb_tui.watch.run_reducer import RunReducer
from llmb_tui.watch.state import Progress, Step
from llmb_tui.watch.verdict import benchmark_s
from tests.kit.runs import direct_spec

SECRET = "hf_abcdefghijklmnopqrstuvwxyz"
TASK = "pretrain_nemotron4_340b_fp8_gpus256_tp8_pp4_cp1_vp12_mbs1_gbs64"
FOLDER = f"/l/llmb/workloads/pretrain_nemotron4-340b/experiments/{TASK}/{TASK}_1767000000/{TASK}"
NAME = f"research-research.{TASK}"

# As `create_llmb_config` of v25.12 writes it.
CONFIG = """\
job_info:
  job_id: '48123'
  launch_time: '2026-01-21T21:05:18.298517'
  experiment_id: null
workload_info:
  framework: nemo2
  gsw_version: '25.12'
  fw_version: 25.07.01
  workload_type: pretrain
  synthetic_dataset: true
model_info:
  model_name: nemotron4
  model_size: 340b
  dtype: fp8
  scale: 256
  gpu_type: gb200
cluster_info:
  cluster_name: eos
  gpus_per_node: 4
  llmb_install: /l/llmb
  llmb_repo: /l/llmb/llmb_repo
  slurm_account: research
  slurm_gpu_partition: batch
  slurm_cpu_partition: cpu
container_info:
  images:
  - nvcr.io#nvidia/nemo:25.07.01
job_config:
  profile_enabled: false
  strong_scaling: false
  env_overrides: {}
  model_overrides: {}
"""


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(UserPaths(tmp_path / "config", tmp_path / "state"))


def found(config: str = CONFIG, folder: str = FOLDER, **texts: str) -> LlmbRun:
    given = {"run": config, "written": "1769029518\n", "logs": f"log-{NAME}_48123_0.out\n", "job": "", **texts}
    return run_of(f"{folder}/llmb-config_48123.yaml", given)


def one(catalog: Catalog, runs: Runs, run: LlmbRun) -> ImportableRun:
    return importable_runs(catalog, runs, "eos", [run])[0]


def test_the_file_describes_the_run_and_its_folder_the_place() -> None:
    run = found()
    assert (run.job_id, run.workload, run.release, run.framework) == (
        "48123",
        "pretrain_nemotron4-340b",
        "25.12",
        "nemo2",
    )
    assert (run.size, run.gpu, run.dtype, run.scale) == ("340b", "gb200", "fp8", 256)
    assert (run.folder, run.written_at, run.unreadable) == (FOLDER, 1769029518.0, "")
    assert run.log is not None
    assert run.log.path("48123", 2) == f"{FOLDER}/log-{NAME}_48123_2.out"
    assert run.log.beside_of("48123") == (f"{FOLDER}/sbatch_{NAME}_48123.out",)


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        ({}, NAME),
        ({"logs": f"log-other.name_48123_1.out\nlog-{NAME}_48124_0.out\n"}, "other.name"),
        ({"logs": "", "job": "from-the.script\n"}, "from-the.script"),
        ({"logs": "", "job": "'quoted.name'\n"}, "quoted.name"),
        ({"logs": ""}, NAME),
    ],
)
def test_the_logs_name_is_found_or_follows_nemo_runs_rule(texts: dict[str, str], name: str) -> None:
    log = found(**texts).log
    assert log is not None
    assert log.path("48123") == f"{FOLDER}/log-{name}_48123_0.out"


def test_nemo_run_uses_the_last_part_of_the_account_in_the_job_name() -> None:
    log = found(CONFIG.replace("slurm_account: research", "slurm_account: a_b_team"), logs="").log
    assert log is not None
    assert log.path("48123") == f"{FOLDER}/log-a_b_team-team.{TASK}_48123_0.out"


def test_an_unquoted_release_is_read_as_text() -> None:
    assert found(CONFIG.replace("'25.12'", "25.10")).release == "25.10"


def test_values_of_variables_are_kept_only_if_a_plan_needs_them() -> None:
    overrides = f"env_overrides: {{MAX_STEPS: 100, HF_TOKEN: {SECRET}, NCCL_DEBUG: INFO}}"
    run = found(
        CONFIG.replace("env_overrides: {}", overrides).replace("model_overrides: {}", "model_overrides: {tp: 4}")
    )
    assert run.planned == (("MAX_STEPS", "100"),)
    assert run.changed == ("HF_TOKEN", "NCCL_DEBUG", "tp")
    assert SECRET not in repr(run)


@pytest.mark.parametrize("config", ["", "[", f"a: {SECRET}: b", "x" * 70_000, "- 1\n"])
def test_a_broken_file_is_listed_with_the_reason(config: str, catalog: Catalog, runs: Runs) -> None:
    run = one(catalog, runs, found(config))
    assert (run.run.job_id, run.plan) == ("48123", None)
    assert run.why_not
    assert SECRET not in run.why_not


def test_texts_of_a_file_are_harmless() -> None:
    run = found(CONFIG.replace("gpu_type: gb200", 'gpu_type: "gb\\e[2J200\\n"'))
    assert "\x1b" not in repr(run)
    assert "\n" not in run.gpu


def test_a_run_is_planned_by_the_preset_of_its_release(catalog: Catalog, runs: Runs) -> None:
    plan = one(catalog, runs, found()).plan
    assert plan is not None
    selection = plan.selection
    assert (selection.workload, selection.release, selection.size) == ("nemotron4-340b", "25.12", "340b")
    assert (selection.gpu, selection.dtype, selection.scale) == ("gb200", "fp8", 256)
    assert selection.overrides.set_fields() == {}
    assert plan.estimate is not None
    assert plan.estimate.method == "other_release"


def test_a_corrected_release_uses_the_releases_preset(catalog: Catalog, runs: Runs) -> None:
    assert one(catalog, runs, found(CONFIG.replace("'25.12'", "'25.12.02'"))).plan is not None


def test_settings_of_the_launch_change_the_plan(catalog: Catalog, runs: Runs) -> None:
    overrides = "env_overrides: {MAX_STEPS: '100', ENABLE_CHECKPOINT: 'TRUE', STRONG_SCALING: true, NCCL_X: 1}"
    plan = one(catalog, runs, found(CONFIG.replace("env_overrides: {}", overrides))).plan
    assert plan is not None
    assert (plan.steps, plan.scaling, plan.options.save_checkpoint) == (100, "strong", True)
    assert "NCCL_X" in plan.problems[-1].reason


@pytest.mark.parametrize(
    ("changes", "folder", "said"),
    [
        ("model_overrides: {tp: 4}", "plain", "The run was started with tp changed, which the expected step time does"),
        (
            "model_overrides: {seq_len: 9}",
            TASK,
            "The run was started with seq_len changed, which the expected step time",
        ),
        ("model_overrides: {tp: 8}", TASK, ""),
        (
            "env_overrides: {TP_COMM_OVERLAP: 0}",
            TASK,
            "the runs behind the expected step time: TP_COMM_OVERLAP changed",
        ),
    ],
    ids=["a parameter", "one of which the folder's name says nothing", "one that the plan has", "a variable"],
)
def test_the_verdict_names_changed_settings(catalog: Catalog, runs: Runs, changes: str, folder: str, said: str) -> None:
    config = CONFIG.replace("dtype: fp8", "dtype: bf16").replace(changes.partition("{")[0] + "{}", changes)
    run = import_run(catalog, runs, "eos", one(catalog, runs, found(config, FOLDER.replace(TASK, folder))))
    assert runs.load(run.id) == run
    assert run.plan.estimate is not None
    steps = [Step(index, 50, run.plan.estimate.step_time_s * 1.2) for index in range(50)]
    progress = fold(Progress(), steps, run.plan)
    # The published step time belongs to another container.
    reducer = RunReducer(replace(run, plan=replace(run.plan, container=None)), threshold=THRESHOLD)
    reducer.take(LogRead("log", 9, 1.0, 1.0, started=True, progress=progress))
    verdict = reducer.state(2.0).verdict
    assert verdict is not None
    in_doubt = "The run was started with" in said
    assert (verdict.result, benchmark_s(run.plan, run.rule, progress, ()) is None) == (
        "WARN" if in_doubt else "FAIL",
        in_doubt,
    )
    assert any(said in reason for reason in verdict.reasons)
    assert any("changed" in reason for reason in verdict.reasons) == bool(said)


def test_a_profiled_run_ends_with_its_profile(catalog: Catalog, runs: Runs) -> None:
    config = CONFIG.replace("profile_enabled: false", "profile_enabled: true")
    plan = one(catalog, runs, found(config.replace("env_overrides: {}", "env_overrides: {PROFILE_STOP_STEP: 30}"))).plan
    assert plan is not None
    assert (plan.options.profile, plan.steps) == (True, 30)


def test_the_layout_in_the_folder_name_takes_precedence_over_the_file(catalog: Catalog, runs: Runs) -> None:
    """The recipe's scripts name the folder after the layout in use; the file lists only requested values."""
    text = FOLDER.replace("_pp4_", "_pp8_").replace("_gbs64", "_gbs128").replace("_vp12", "")
    plan = one(catalog, runs, found(folder=text, logs="")).plan
    assert plan is not None
    p = plan.parallelism
    assert (p.tp, p.pp, p.vp, p.gbs) == (8, 8, None, 128)
    assert plan.selection.overrides.set_fields() == {"pp": 8, "vp": 1, "gbs": 128}
    assert plan.estimate is None or plan.estimate.method not in ("published", "other_release")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("gsw_version: '25.12'", "gsw_version: '25.08'", "nemotron4-340b of release 25.08, only nemotron4-340b@25.12"),
        ("gsw_version: '25.12'", "", "of release unknown"),
        ("framework: nemo2", "framework: megatron_bridge", "framework is megatron_bridge"),
        ("model_size: 340b", "model_size: 15b", "15b"),
        ("gpu_type: gb200", "gpu_type: mi300", "mi300"),
        ("dtype: fp8", "dtype: nvfp4", "nvfp4"),
        ("scale: 256", "scale: many", "scale"),
    ],
)
def test_a_run_without_a_matching_preset_has_a_reason(
    before: str, after: str, words: str, catalog: Catalog, runs: Runs
) -> None:
    run = one(catalog, runs, found(CONFIG.replace(before, after, 1)))
    assert run.plan is None
    assert words in run.why_not
    with pytest.raises(LlmbError) as caught:
        import_run(catalog, runs, "eos", run)
    assert caught.value.exit_code == 1
    assert runs.all() == ()


@pytest.mark.parametrize(
    ("scale", "batch", "words"),
    [
        (48, "_gbs64", "TP 8 x PP 4 x CP 1 = 32 does not divide 48 GPUs"),
        (256, "_gbs63", "MBS 1 x DP 8 = 8 does not divide GBS 63"),
        (256, f"_gbs{1 << 53}", f"gbs is {1 << 53}"),
    ],
)
def test_a_run_with_impossible_numbers_is_not_opened_and_not_stored(
    scale: int, batch: str, words: str, catalog: Catalog, runs: Runs
) -> None:
    """Such a run could be stored, but not read again."""
    config = CONFIG.replace("scale: 256", f"scale: {scale}")
    run = one(catalog, runs, found(config, FOLDER.replace("_gbs64", batch)))
    assert words in run.why_not
    with pytest.raises(LlmbError, match="cannot be opened") as caught:
        import_run(catalog, runs, "eos", run)
    assert caught.value.exit_code == 1
    assert runs.listing() == ((), ())


@pytest.mark.parametrize("written", ["9" * 12, "9" * 400], ids=len)
def test_an_invalid_time_is_unknown(written: str, catalog: Catalog, runs: Runs) -> None:
    run = found(written=written)
    assert run.written_at == 0
    assert import_run(catalog, runs, "eos", one(catalog, runs, run)).submitted_at is None


def test_another_workload_is_listed_too(catalog: Catalog, runs: Runs) -> None:
    run = one(catalog, runs, found(folder="/l/llmb/workloads/microbenchmark_cpu_overhead", logs=""))
    assert run.run.workload == "microbenchmark_cpu_overhead"
    assert "No preset has microbenchmark_cpu_overhead" in run.why_not


def test_it_is_stored_as_a_run_of_llmb_run(catalog: Catalog, runs: Runs) -> None:
    run = import_run(catalog, runs, "eos", one(catalog, runs, found()))
    assert (run.procedure, run.spec, run.submission, run.job_ids) == ("llmb", None, "submitted", ("48123",))
    assert (run.created_at, run.submitted_at, run.log) == (1769029518.0, 1769029518.0, found().log)
    assert (run.rule.kind, run.log_format, run.cluster, run.is_active) == ("mean", "nemo2", "eos", True)
    assert runs.load(run.id) == run
    with pytest.raises(TypeError, match="no LaunchSpec"):
        _ = direct_spec(run)


def test_importing_a_run_twice_gives_the_same_run_with_its_saved_state(catalog: Catalog, runs: Runs) -> None:
    first = import_run(catalog, runs, "eos", one(catalog, runs, found()))
    runs.save(replace(first, job_state="COMPLETED"))
    again = one(catalog, runs, found())
    assert again.imported_id == first.id
    assert import_run(catalog, runs, "eos", again).job_state == "COMPLETED"
    assert import_run(catalog, runs, "eos", replace(again, imported_id="")).id == first.id
    assert len(runs.all()) == 1


def test_a_reused_job_number_gives_a_second_run(catalog: Catalog, runs: Runs) -> None:
    first = import_run(catalog, runs, "eos", one(catalog, runs, found()))
    later = one(catalog, runs, found(folder=FOLDER.replace("_1767000000", "_1799999999")))
    assert later.imported_id == ""
    assert import_run(catalog, runs, "eos", later).id != first.id
