from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import PLACEHOLDERS
from llmb_tui.catalog.rows import rows
from llmb_tui.errors import Trouble
from llmb_tui.launch.spec_of import checked, launch_spec, new_run_id
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.remote.pretrain import read_launch
from tests.launch.launch_cases import PROFILE, RUN_ID, MakePlan, MakeSpec


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
def test_names_and_directories_are_the_recipes_own(
    make_spec: MakeSpec, selection: tuple[object, ...], experiment: str, workload_folder: str
) -> None:
    spec = make_spec(*selection)
    task = f"{experiment}_{RUN_ID}"
    folder = f"/lustre/llmb/workloads/{workload_folder}/experiments/{experiment}/{task}"
    assert (spec.experiment, spec.task, spec.experiment_dir) == (experiment, task, folder)
    assert spec.task_dir == f"{folder}/{task}"
    assert spec.job_name == f"research_llm_bench-bench.{task}"
    assert spec.log_name("48123") == f"log-research_llm_bench-bench.{task}_48123_0.out"


def test_the_image_is_named_as_the_recipes_name_it(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)
    assert spec.container_image == "/lustre/llmb/images/nvidia+nemo+25.02.01.sqsh"


def test_strong_scaling_gets_its_own_time_limit_and_batch(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4-340b@25.12", "340b", "gb200", "fp8", 128, strong_scaling=True)
    assert spec.time_limit == "00:35:00"
    assert spec.experiment.endswith("_gbs512")


def test_nemo2_runs_our_entry_script_from_the_run_folder(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)
    assert spec.command == ("python", "/nemo_run/code/pretrain.py", "/nemo_run/configs/launch.json")
    assert [below for _, below in spec.copies] == ["code/pretrain.py"]
    assert spec.mounts == ()


def test_hydra_runs_the_recipes_command_with_the_plans_numbers(make_spec: MakeSpec) -> None:
    spec = make_spec("grok1@25.02", "314b", "h100", "fp8", 64)
    assert spec.command[:2] == ("python3", "-u")
    assert spec.command[2].endswith("/megatron_gpt_pretraining.py")
    for override in (
        "model.global_batch_size=1024",
        "trainer.num_nodes=8",
        "model.virtual_pipeline_model_parallel_size=null",
        "exp_manager.checkpoint_callback_params.model_parallel_size=4",
        "model.optim.overlap_param_gather_with_optimizer_step=False",
        "model.fp8=True",
        "run.results_dir=/nemo_run/results",
    ):
        assert override in spec.command
    assert not any("{" in word for word in spec.command)
    assert "/lustre/llmb/cfg:/cfg" in spec.mounts
    assert spec.copies == ()


def test_every_placeholder_of_the_presets_is_filled(make_plan: MakePlan, catalog: Catalog) -> None:
    hydra = catalog.recipe("grok1")
    template = "+".join(f"{{{name}}}" for name in PLACEHOLDERS)
    recipe = replace(hydra, launch=replace(hydra.launch, overrides=(template,)))
    spec = launch_spec(recipe, make_plan("grok1@25.02", "314b", "h100", "fp8", 128), PROFILE, RUN_ID)
    assert spec.command[-1] == "4+2+2+8+8+1+1024+8192+16+16+8+50+fp8+True+8+True+/nemo_run/results"


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


def test_the_entry_script_reads_launch_json_of_every_published_row(catalog: Catalog) -> None:
    read = 0
    for recipe in catalog.recipes:
        for row in rows(recipe) if recipe.launch.kind == "nemo2" else ():
            selection = Selection(
                recipe.workload, recipe.release, row.size, row.gpu, row.dtype, row.gpus, row.scaling == "strong"
            )
            spec = launch_spec(recipe, plan(catalog, selection), PROFILE, RUN_ID)
            launch = read_launch(dict(spec.files)["configs/launch.json"])
            assert (launch.tp, launch.pp, launch.cp, launch.vp) == (row.tp, row.pp, row.cp, row.vp)
            assert (launch.mbs, launch.gbs, launch.layers, launch.dp) == (row.mbs, row.gbs, row.layers, row.dp)
            assert launch.nodes * launch.gpus_per_node == row.gpus
            read += 1
    assert read > 80


def test_layers_divide_over_the_pipeline_stages_as_the_entry_script_counts_them(catalog: Catalog) -> None:
    recipe = catalog.recipe("llama3.1@25.04")
    made = plan(catalog, Selection("llama3.1", "25.04", "405b", "h100", "bf16", 512))
    launch = read_launch(dict(launch_spec(recipe, made, PROFILE, RUN_ID).files)["configs/launch.json"])
    assert launch.embedding_in_pipeline
    assert (launch.layers + 2) % (launch.pp * (launch.vp or 1)) == 0


def test_current_scaling_of_fp8_came_with_25_12(make_spec: MakeSpec) -> None:
    old = make_spec("nemotron4@25.04", "340b", "h100", "fp8", 256)
    new = make_spec("nemotron4-340b@25.12", "340b", "h100", "fp8", 256)
    assert read_launch(dict(old.files)["configs/launch.json"]).fp8_scaling == "delayed"
    assert read_launch(dict(new.files)["configs/launch.json"]).fp8_scaling == "current"


def test_a_plan_with_an_error_cannot_become_a_job(catalog: Catalog, make_plan: MakePlan) -> None:
    made = make_plan("nemotron4@25.04", "15b", "h100", "fp8", 7)
    assert not made.launchable
    with pytest.raises(Trouble) as caught:
        launch_spec(catalog.recipe("nemotron4"), made, PROFILE, RUN_ID)
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
    ],
)
def test_values_that_do_not_fit_into_a_script_are_refused(make_spec: MakeSpec, change: dict[str, str]) -> None:
    with pytest.raises(Trouble) as caught:
        make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=replace(PROFILE, **change))  # type: ignore[arg-type]
    assert caught.value.exit_code == 1
    assert "\n" not in caught.value.what


def test_a_list_of_partitions_and_an_unusual_path_are_accepted(make_spec: MakeSpec) -> None:
    profile = replace(PROFILE, partition="batch,batch_long", install_dir="/lustre/fs1/Müller@site/llmb+1/")
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=profile)
    assert spec.container_image.startswith("/lustre/fs1/Müller@site/llmb+1/images/")


@given(value=st.text(min_size=1))
def test_no_accepted_value_can_leave_its_word(make_spec: MakeSpec, value: str) -> None:
    try:
        checked(replace(make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64), account=value))
    except Trouble:
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


def test_what_a_profile_changes_of_the_recipe_is_told(make_spec: MakeSpec) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=SITE)
    assert spec.overridden == (("NCCL_NVLS_ENABLE", "0", "1"),)
    assert make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64).overridden == ()


def test_a_hydra_recipes_own_mounts_come_first(make_spec: MakeSpec) -> None:
    spec = make_spec("grok1@25.02", "314b", "h100", "bf16", 64, profile=SITE)
    assert [mount.split(":")[1] for mount in spec.mounts] == ["/cfg", "/dataset", "/data", "/x"]


@pytest.mark.parametrize(
    "change",
    [
        {"options": (("wrap x", "1"),)},
        {"options": (("comment", "a'b"),)},
        {"options": (("comment", "a\n#SBATCH --x"),)},
        {"mounts": ("/a:/b,/c:/d",)},
        {"mounts": ("/a:/b:r w",)},
        {"mounts": ("/a",)},
        {"env": (("A", "x\ny"),)},
    ],
)
def test_a_spec_with_such_a_value_is_refused(make_spec: MakeSpec, change: dict[str, object]) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)
    with pytest.raises(Trouble) as caught:
        checked(replace(spec, **change))  # type: ignore[arg-type]
    assert caught.value.exit_code == 1


def test_run_ids_are_unique_words_in_the_order_of_time() -> None:
    ids = [new_run_id(1763712000.0 + i) for i in range(100)]
    assert ids == sorted(ids)
    assert all(i.isalnum() and i == i.lower() for i in ids)
    assert len({new_run_id(1763712000.0) for _ in range(100)}) > 95
