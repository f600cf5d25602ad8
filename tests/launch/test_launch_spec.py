from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.rows import rows
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.option_effects import NETWORK_NOTE, NETWORK_README
from llmb_tui.launch.direct.spec_of import checked, launch_spec
from llmb_tui.launch.naming import new_run_id
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import RunOptions, Selection
from llmb_tui.preflight.secret import HUB_TOKEN
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE, RUN_ID, MakePlan, MakeSpec

WAITS = "afterok:12:13"


@pytest.mark.parametrize(
    ("selection", "experiment", "workload_folder"),
    [
        (("nemotron4@25.04", "15b", "h100", "fp8", 64), "pretrain_nemotron4_15b_fp8_64", "pretrain_nemotron4"),
        (("llama3.1@25.04", "8b", "h100", "bf16", 8), "pretrain_llama3.1_8b_bf16_8", "pretrain_llama3.1"),
        (("llama3.1@24.11", "405b", "h100", "fp8", 576), "pretrain_llama3.1_405b_fp8_576", "pretrain_llama3.1"),
        (("grok1@25.02", "314b", "h100", "bf16", 64), "pretrain_grok1_314b_bf16_64", "pretrain_grok1"),
        (
            ("nemotron4-340b@25.12", "340b", "gb200", "fp8", 128),
            "pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs32",
            "pretrain_nemotron4-340b",
        ),
    ],
)
def test_names_and_directories_are_those_of_the_recipe(
    make_spec: MakeSpec, selection: tuple[object, ...], experiment: str, workload_folder: str
) -> None:
    spec = make_spec(*selection)
    task = f"{experiment}_{RUN_ID}"
    folder = f"/lustre/llmb/workloads/{workload_folder}/experiments/{experiment}/{task}"
    assert (spec.experiment, spec.task, spec.experiment_dir) == (experiment, task, folder)
    assert spec.task_dir == f"{folder}/{task}"
    assert spec.job_name == f"research_llm_bench-bench.{task}"
    assert spec.log.path("48123") == f"{spec.task_dir}/log-research_llm_bench-bench.{task}_48123_0.out"


def test_a_job_that_waits_for_others_has_a_dependency_in_slurm(make_plan: MakePlan, catalog: Catalog) -> None:
    run_plan = make_plan("nemotron4@25.04", "15b", "h100", "fp8", 64)
    request = RunRequest(catalog.recipe("nemotron4@25.04"), run_plan, PROFILE)
    alone, waiting = (launch_spec(one, RUN_ID) for one in (request, replace(request, dependency=WAITS)))
    assert set(waiting.options) - set(alone.options) == {("dependency", WAITS), ("kill-on-invalid-dep", "yes")}
    assert [Run.of(request, spec, 0.0).dependency for spec in (alone, waiting)] == ["", WAITS]


def test_the_image_is_named_as_the_recipes_name_it(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)
    assert spec.container_image == "/lustre/llmb/images/nvidia+nemo+25.02.01.sqsh"


def test_strong_scaling_has_a_separate_time_limit_and_batch(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4-340b@25.12", "340b", "gb200", "fp8", 128, strong_scaling=True)
    assert spec.time_limit == "00:35:00"
    assert spec.experiment.endswith("_gbs512")


def test_nemo2_runs_our_entry_script_from_the_run_folder(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)
    assert spec.command[-3:] == ("python", "/nemo_run/code/pretrain.py", "/nemo_run/configs/launch.json")
    assert [below for _, below in spec.copies] == ["code/pretrain.py"]
    assert spec.mounts == ()


def test_hydra_runs_the_recipes_command_with_the_plans_numbers(make_spec: MakeSpec) -> None:
    spec = make_spec("grok1@25.02", "314b", "h100", "fp8", 64)
    assert any(word.endswith("/megatron_gpt_pretraining.py") for word in spec.command)
    for override in (
        "model.global_batch_size=1024",
        "trainer.num_nodes=8",
        "model.virtual_pipeline_model_parallel_size=null",
        "model.optim.overlap_param_gather_with_optimizer_step=False",
        "model.fp8=True",
        "run.results_dir=/nemo_run/results",
    ):
        assert override in spec.command
    assert spec.mounts == ()
    assert spec.copies == ()


@pytest.mark.parametrize(
    ("selection", "name", "value"),
    [
        (("nemotron4@25.04", "15b", "h100", "fp8", 64), "CUDA_DEVICE_MAX_CONNECTIONS", "1"),  # TP 2
        (("nemotron4@25.04", "15b", "h100", "fp8", 64), "NCCL_P2P_NET_CHUNKSIZE", None),  # PP 1
        (("nemotron4@25.04", "340b", "h100", "fp8", 256), "NCCL_P2P_NET_CHUNKSIZE", "2097152"),
        (("nemotron4-340b@25.12", "340b", "gb200", "fp8", 128), "CUDA_DEVICE_MAX_CONNECTIONS", "32"),  # the preset wins
        (("nemotron4-340b@25.12", "340b", "gb200", "fp8", 128), "NCCL_NET_GDR_LEVEL", "PHB"),  # by GPU type
        (("nemotron4-340b@25.12", "340b", "b200", "fp8", 128), "NCCL_NET_GDR_LEVEL", None),
        (("llama3.1@24.11", "405b", "h100", "fp8", 576), "NCCL_P2P_NET_CHUNKSIZE", "262144"),
    ],
)
def test_environment(make_spec: MakeSpec, selection: tuple[object, ...], name: str, value: str | None) -> None:
    assert dict(make_spec(*selection).env).get(name) == value


def test_plan_json_is_the_contracts_plan_with_the_steps(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, steps=20)
    document = json.loads(dict(spec.files)["configs/plan.json"])
    assert document["steps"] == 20
    assert document["estimate"]["step_time_s"] == 1.98
    assert document["selection"]["scale"] == 64


def test_every_published_row_becomes_a_job(catalog: Catalog) -> None:
    number = 0
    for recipe in catalog.recipes:
        for row in rows(recipe):
            selection = Selection(
                recipe.workload, recipe.release, row.size, row.gpu, row.dtype, row.gpus, row.scaling == "strong"
            )
            spec = launch_spec(RunRequest(recipe, plan(catalog, selection), PROFILE), RUN_ID, (24, 5))
            assert spec.nodes * spec.tasks_per_node == row.gpus
            assert {"mpi": "pmix", "container-writable": None}.items() <= dict(spec.srun).items()
            if recipe.launch.kind == "nemo2":
                launch = json.loads(dict(spec.files)["configs/launch.json"])
                assert launch["settings"]["trainer.strategy.tensor_model_parallel_size"] == row.tp
            number += 1
    assert number > 100


def test_a_plan_with_an_error_cannot_become_a_job(catalog: Catalog, make_plan: MakePlan) -> None:
    run_plan = make_plan("nemotron4@25.04", "15b", "h100", "fp8", 7)
    assert not run_plan.launchable
    with pytest.raises(LlmbError) as caught:
        launch_spec(RunRequest(catalog.recipe("nemotron4"), run_plan, PROFILE), RUN_ID)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    "change",
    [
        {"account": "a b"},
        {"account": "a\n#SBATCH --wrap=x"},
        {"account": "--uid=0"},
        {"account": "$(id)"},
        {"account": ""},
        {"partition": "batch;rm"},
        {"partition": "batch,"},
        {"install_dir": "relative/dir"},
        {"install_dir": "/with blank"},
        {"install_dir": "/a:b"},
        {"install_dir": "/a/../b"},
        {"install_dir": "/job%j"},
        {"install_dir": "/$HOME"},
        {"gpu_request": "tres"},
        {"memory": "500G\n#SBATCH --wrap=x"},
        {"memory": "all"},
    ],
)
def test_values_that_do_not_fit_into_a_script_are_refused(make_spec: MakeSpec, change: dict[str, str]) -> None:
    with pytest.raises(LlmbError) as caught:
        make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=replace(PROFILE, **change))  # type: ignore[arg-type]
    assert caught.value.exit_code == 1
    assert "\n" not in caught.value.what


def test_a_list_of_partitions_and_an_unusual_path_are_accepted(make_spec: MakeSpec) -> None:
    profile = replace(PROFILE, partition="batch,batch_long", install_dir="/lustre/fs1/Müller@site/llmb+1/")
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=profile)
    assert spec.container_image.startswith("/lustre/fs1/Müller@site/llmb+1/images/")


@given(value=st.text(min_size=1))
def test_no_accepted_value_contains_shell_characters(make_spec: MakeSpec, value: str) -> None:
    try:
        checked(replace(make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64), account=value))
    except LlmbError:
        return
    assert not set(value) & set(" \t\n\r\\'\"`$&|;<>()[]{}*?!#~%,:/")
    assert not value.startswith("-")


SITE = replace(
    PROFILE,
    reservation="bench",
    qos="gold",
    constraint="gpu&memory",
    exclude="cn[003,007]",
    slurm_params="nodelist=n1,n2;hold",
    mounts=("/data:/data:ro", "/lustre/x:/x"),
    env=(("NCCL_DEBUG", "INFO"), ("NCCL_NVLS_ENABLE", "1"), ("TOKENIZERS_PARALLELISM", "False")),
)


def test_a_profile_adds_options_mounts_and_environment(make_spec: MakeSpec) -> None:
    plain = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=SITE)
    assert plain.options == ()
    assert dict(spec.options) == {
        "reservation": "bench",
        "qos": "gold",
        "constraint": "gpu&memory",
        "exclude": "cn[003,007]",
        "nodelist": "n1,n2",
        "hold": None,
    }
    assert spec.mounts == (*plain.mounts, "/data:/data:ro", "/lustre/x:/x")
    assert spec.env[-1] == ("NCCL_DEBUG", "INFO")
    assert {name: value for name, value in spec.env if dict(plain.env).get(name) != value} == {
        "NCCL_DEBUG": "INFO",
        "NCCL_NVLS_ENABLE": "1",
    }


def test_a_profiles_changes_to_the_recipe_are_recorded(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=SITE)
    assert spec.overridden == (("NCCL_NVLS_ENABLE", "0", "1"),)
    assert make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64).overridden == ()


def test_conditions_of_the_expected_step_time_are_recorded(make_spec: MakeSpec) -> None:
    def otherwise(row: tuple[object, ...], **changes: Any) -> tuple[str, ...]:
        return make_spec(*row, profile=replace(PROFILE, **changes)).otherwise

    assert otherwise(NEMOTRON) == ("vboost off", NETWORK_NOTE)  # upstream's launch.sh always tries vboost
    assert otherwise(NEMOTRON, vboost=True) == (NETWORK_NOTE,)
    changed = {"vboost": True, "cpus_per_task": 14, "env": (("NCCL_NVLS_ENABLE", "1"),)}
    assert otherwise(NEMOTRON, **changed) == (
        "14 CPUs a task",
        NETWORK_NOTE,
        "NCCL_NVLS_ENABLE from the cluster's profile",
    )
    of_25_12 = ("nemotron4-340b@25.12", "340b", "h100", "bf16", 256)
    # The expected step time of 25.12 is a result of 25.04.
    assert otherwise(of_25_12, numa_binding=False) == ("vboost off", "no NUMA binding", NETWORK_NOTE)
    assert otherwise(("grok1@25.02", "314b", "h100", "bf16", 8), vboost=True) == ("vboost on",)


def test_a_hydra_recipe_adds_no_mounts(make_spec: MakeSpec) -> None:
    spec = make_spec("grok1@25.02", "314b", "h100", "bf16", 64, profile=SITE)
    assert [mount.split(":")[1] for mount in spec.mounts] == ["/data", "/x"]


@pytest.mark.parametrize(
    "change",
    [
        {"options": (("wrap x", "1"),)},
        {"options": (("comment", "ä"),)},
        {"gpu_request": "gres:h100:8"},
        {"gpu_request": "gres:h100\n#SBATCH --x"},
        {"gpu_request": "none:h100"},
        {"gpu_request": "tres"},
        {"partition": "batch\n#SBATCH --x"},
        {"options": (("comment", "a\n#SBATCH --x"),)},
        {"mounts": ("/a:/b,/c:/d",)},
        {"mounts": ("/a:/b:r w",)},
        {"mounts": ("/a",)},
        {"env": (("A", "x\ny"),)},
        {"memory": "$(id)"},
        {"srun": (("mpi", "pmix\n"),)},
        {"srun": (("mpi x", None),)},
        {"folders": ("relative",)},
        {"folders": ("/a/../b",)},
        {"links": (("../../etc/passwd", "x"),)},
        {"links": ((".llmb-tui/x", "../x"),)},
        {"copies": (("/a", "../b"),)},
        {"files": (("/etc/passwd", ""),)},
    ],
)
def test_a_spec_with_such_a_value_is_refused(make_spec: MakeSpec, change: dict[str, object]) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)
    with pytest.raises(LlmbError) as caught:
        checked(replace(spec, **change))  # type: ignore[arg-type]
    assert caught.value.exit_code == 1


def test_run_ids_are_unique_words_in_the_order_of_time() -> None:
    ids = [new_run_id(1763712000.0 + i) for i in range(100)]
    assert ids == sorted(ids)
    assert all(i.isalnum() and i == i.lower() for i in ids)
    assert len({new_run_id(1763712000.0) for _ in range(100)}) > 95


GB200 = ("nemotron4-340b@25.12", "340b", "gb200", "fp8")
NEMOTRON = ("nemotron4@25.04", "15b", "h100", "fp8", 64)


@pytest.fixture(scope="module")
def place(catalog: Catalog, make_plan: MakePlan) -> MakeSpec:
    """A spec for a cluster with a certain Slurm."""

    def made(
        recipe: str, *selection: object, slurm: tuple[int, int] | None, profile: SlurmProfile = PROFILE
    ) -> LaunchSpec:
        return launch_spec(RunRequest(catalog.recipe(recipe), make_plan(recipe, *selection), profile), RUN_ID, slurm)

    return made


@pytest.mark.parametrize(
    ("gpus", "segment"),
    [(128, "16"), (256, "16"), (512, "16")],  # 32, 64 and 128 nodes of four GPUs; a rack of NVL72 has 18
)
def test_large_gb200_jobs_request_the_largest_segments(place: MakeSpec, gpus: int, segment: str) -> None:
    spec = place(*GB200, gpus, slurm=(24, 5))
    assert dict(spec.options) == {"segment": segment}
    assert spec.notes == (NETWORK_NOTE,)


@pytest.mark.parametrize(("slurm", "words"), [((22, 5), "Slurm 22.05"), (None, "Slurm unknown")])
def test_a_segment_that_slurm_may_not_support_is_left_out_with_a_note(
    place: MakeSpec, slurm: tuple[int, int] | None, words: str
) -> None:
    spec = place(*GB200, 128, slurm=slurm)
    assert spec.options == ()
    assert spec.notes == (f"No --segment=16: {words}", NETWORK_NOTE)


@pytest.mark.parametrize("change", [{"segment": 8}, {"slurm_params": "segment=8"}])
def test_the_profiles_segment_takes_precedence_over_the_recipes(place: MakeSpec, change: dict[str, object]) -> None:
    for slurm in ((24, 5), None):
        spec = place(*GB200, 128, slurm=slurm, profile=replace(PROFILE, **change))  # type: ignore[arg-type]
        assert (spec.options, spec.notes) == ((("segment", "8"),), (NETWORK_NOTE,))


def test_h100_jobs_have_no_segment(place: MakeSpec) -> None:
    assert place("nemotron4-340b@25.12", "340b", "h100", "fp8", 2048, slurm=(24, 5)).options == ()


@pytest.mark.parametrize(("gpu", "tasks"), [("gb200", 2), ("gb300", 2), ("h100", 4), ("b200", 4)])
def test_tasks_of_25_12_are_bound_to_numa_nodes(make_spec: MakeSpec, gpu: str, tasks: int) -> None:
    spec = make_spec("nemotron4-340b@25.12", "340b", gpu, "fp8", 256)
    assert spec.command[:2] == ("bash", "-c")
    assert f"--cpunodebind=$((SLURM_LOCALID/{tasks})) --membind=$((SLURM_LOCALID/{tasks}))" in spec.command[2]
    assert spec.command[-3:] == ("python", "/nemo_run/code/pretrain.py", "/nemo_run/configs/launch.json")


def test_a_profile_can_leave_numa_binding_out(make_spec: MakeSpec) -> None:
    spec = make_spec(*GB200, 128, profile=replace(PROFILE, numa_binding=False, segment=16))
    assert not any("numactl" in word for word in spec.command)
    assert spec.notes == ("No NUMA binding", NETWORK_NOTE)
    unbound = make_spec(*NEMOTRON, profile=replace(PROFILE, numa_binding=False))
    assert unbound.notes == (NETWORK_NOTE,)  # 25.04 binds none


def test_cpu_pinning_replaces_numa_binding(make_spec: MakeSpec) -> None:
    spec = make_spec(*GB200, 128, profile=replace(PROFILE, cpus_per_task=14, segment=16))
    assert spec.srun[-4:] == (
        ("cpu-bind", "verbose"),
        ("cpus-per-task", "14"),
        ("hint", "multithread"),
        ("distribution", "*:block"),
    )
    assert not any("numactl" in word for word in spec.command)
    assert spec.experiment.endswith("_gbs32_pinned")
    assert spec.notes == ("14 CPUs a task, no NUMA binding", NETWORK_NOTE)
    assert make_spec(*NEMOTRON, profile=replace(PROFILE, cpus_per_task=14)).notes == ("14 CPUs a task", NETWORK_NOTE)


def test_memory_and_vboost_of_the_profile_are_recorded(make_spec: MakeSpec) -> None:
    plain = make_spec(*NEMOTRON)
    spec = make_spec(*NEMOTRON, profile=replace(PROFILE, memory="900G", vboost=True))
    assert (plain.memory, plain.vboost, plain.notes) == ("0", False, (NETWORK_NOTE,))
    assert (spec.memory, spec.vboost, len(spec.notes)) == ("900G", True, 3)


PROFILED = RunOptions(profile=True, profile_start=20, profile_stop=25)


@pytest.mark.parametrize(
    ("row", "report"),
    [
        (NEMOTRON, "/nemo_run/nsys_profile/profile_%p"),
        (("llama3.1@25.04", "8b", "h100", "bf16", 8), "/nemo_run/nsys_profile/profile_%p"),
        (
            (*GB200, 128),
            "/nemo_run/nsys_profile/profile_%p_%q{SLURM_JOB_ID}_node%q{SLURM_NODEID}_rank%q{SLURM_PROCID}",
        ),
        (
            ("llama3.1@24.11", "405b", "h100", "fp8", 576),
            "/nemo_run/results/nsys/llama3.1-405b-fp8_576g_%q{SLURM_JOB_ID}_%q{SLURM_NODEID}_%q{SLURM_LOCALID}",
        ),
        (
            ("grok1@25.02", "314b", "h100", "bf16", 64),
            "/nemo_run/results/nsys/grok1_314b_bf16_64g_%q{SLURM_JOB_ID}_%q{SLURM_NODEID}_%q{SLURM_LOCALID}",
        ),
    ],
)
def test_a_profiled_run_has_the_same_command_under_nsys(
    make_spec: MakeSpec, row: tuple[object, ...], report: str
) -> None:
    plain, spec = make_spec(*row, options=RunOptions(no_network_file=True)), make_spec(*row, options=PROFILED)
    assert spec.command[:2] == ("nsys", "profile")
    assert report in spec.command
    assert plain.command[0] in spec.command  # bash or python: what nsys runs
    assert "--gpu-metrics-device=all" not in spec.command
    assert spec.experiment == f"{plain.experiment}_nsys"
    folder = report.removeprefix("/nemo_run/").rpartition("/")[0]
    assert f"{folder}/README" in dict(spec.files)  # nsys makes no folder
    assert not any("nsys" in below for below, _ in plain.files)


def test_an_nccl_trace_has_a_separate_name_and_environment(make_spec: MakeSpec) -> None:
    spec = make_spec("llama3.1@25.04", "8b", "h100", "bf16", 8, options=RunOptions(nccl_trace=True))
    assert spec.experiment == "pretrain_llama3.1_8b_bf16_8_nccltrace"
    assert {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "COLL,P2P,NET"}.items() <= dict(spec.env).items()


def test_a_hub_tokenizer_comes_with_a_file_for_its_token(make_spec: MakeSpec) -> None:
    row = ("llama3.1@25.04", "8b", "h100", "bf16", 8)
    plain, spec = make_spec(*row), make_spec(*row, options=RunOptions(hub_tokenizer=True))
    cache = "/lustre/llmb/.cache/huggingface"
    assert dict(spec.env)["HF_HOME"] == cache
    assert spec.folders == (cache,)
    assert f"{cache}:{cache}" in spec.mounts
    # The script knows a link in the run's folder; the token stays in the home directory.
    ((source, link),) = spec.links
    assert source == HUB_TOKEN
    assert f"{spec.task_dir}/{link}:{dict(spec.env)['HF_TOKEN_PATH']}:ro" in spec.mounts
    assert "HF_TOKEN" not in dict(spec.env)
    assert (plain.links, plain.folders, plain.mounts) == ((), (), ())
    assert not {"HF_HOME", "HF_TOKEN_PATH"} & dict(plain.env).keys()


def test_a_checkpoint_is_mounted_at_the_same_path(make_spec: MakeSpec) -> None:
    spec = make_spec(*NEMOTRON, options=RunOptions(load_checkpoint="/lustre/me/run_1"), profile=SITE)
    assert spec.mounts[-1] == "/lustre/me/run_1:/lustre/me/run_1"


@pytest.mark.parametrize("path", ["relative", "/", "/nemo_run/x", "//nemo_run/x", "/a:/b", "/a,b", "/a b", "/../a", ""])
def test_a_checkpoint_elsewhere_is_refused(catalog: Catalog, make_plan: MakePlan, path: str) -> None:
    run_plan = make_plan(*NEMOTRON)
    run_plan = replace(run_plan, options=RunOptions(load_checkpoint=path), problems=())
    with pytest.raises(LlmbError) as caught:
        launch_spec(RunRequest(catalog.recipe(NEMOTRON[0]), run_plan, PROFILE), RUN_ID)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("recipe", "size", "gpus", "words"),
    [
        ("llama3.1@25.04", "8b", 8, "padded vocabulary of meta-llama/Meta-Llama-3-8B,"),
        ("llama3.1@24.11", "405b", 576, "GPT-2's padded vocabulary"),
        ("grok1@25.02", "314b", 512, "Llama 3's padded vocabulary"),
    ],
)
def test_another_tokenizer_is_recorded(place: MakeSpec, recipe: str, size: str, gpus: int, words: str) -> None:
    note = place(recipe, size, "h100", "fp8", gpus, slurm=None).notes[0]
    assert note.startswith("Tokenizer: ")
    assert words in note


@pytest.mark.parametrize(
    "row", [("llama3.1@25.04", "8b", "h100", "fp8", 8), ("grok1@25.02", "314b", "h100", "fp8", 512)]
)
def test_the_recipes_tokenizer_is_not_a_difference(make_spec: MakeSpec, row: tuple[object, ...]) -> None:
    assert make_spec(*row, options=RunOptions(hub_tokenizer=True, no_network_file=True)).notes == ()


HYDRA = ("grok1@25.02", "314b", "h100", "fp8", 64)


@pytest.mark.parametrize("row", [NEMOTRON, HYDRA, (*GB200, 128)], ids=["nemo2", "hydra", "bound"])
def test_nccls_network_lines_are_kept_and_noted_unless_switched_off(
    make_spec: MakeSpec, row: tuple[object, ...]
) -> None:
    spec, not_kept = make_spec(*row), make_spec(*row, options=RunOptions(no_network_file=True))
    assert not any("NCCL_DEBUG" in word for word in not_kept.command)
    assert [word for word in spec.command if "NCCL_DEBUG_FILE=/nemo_run/nccl/%h.%p" in word]
    assert (NETWORK_README in dict(spec.files), NETWORK_README in dict(not_kept.files)) == (True, False)
    assert set(spec.notes) - set(not_kept.notes) == set(spec.otherwise) - set(not_kept.otherwise) == {NETWORK_NOTE}
    assert spec.env == not_kept.env, "other ranks have the variables of the recipe"


@pytest.mark.parametrize(
    "more",
    [
        {"options": RunOptions(profile=True, profile_start=20, profile_stop=25)},
        {"options": RunOptions(nccl_trace=True)},
        {"profile": replace(PROFILE, env=(("NCCL_DEBUG_SUBSYS", "COLL"),))},
        {"profile": replace(PROFILE, env=(("NCCL_DEBUG", "WARN"),))},
    ],
    ids=["profiled", "traced", "subsystem of the profile", "level of the profile"],
)
def test_redirected_or_disturbing_lines_are_not_kept(make_spec: MakeSpec, more: dict[str, Any]) -> None:
    spec = make_spec(*HYDRA, **more)
    assert NETWORK_README not in dict(spec.files)
    assert not any("NCCL_DEBUG_FILE" in word for word in spec.command)


def test_a_run_on_one_node_stores_no_network_lines(make_spec: MakeSpec) -> None:
    assert NETWORK_README not in dict(make_spec("llama3.1@25.04", "8b", "h100", "bf16", 8).files)


def test_a_job_is_the_same_in_other_words_but_not_with_another_option(place: MakeSpec) -> None:
    """A prepared run of an older version, which words its notes differently, can be submitted."""
    spec = place(*GB200, 128, slurm=(24, 5))
    assert spec.is_same_job(replace(spec, notes=("in other words",), otherwise=("also in other words",)))
    assert not spec.is_same_job(replace(spec, options=()))
    assert not spec.is_same_job(None)
