"""The workload of a selection on a Run:ai cluster, by NVIDIA's API, and without text that Run:ai would change."""

from __future__ import annotations

import base64
import io
import json
import shlex
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.profile_check import check_runai_profile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.files import as_json
from llmb_tui.launch.naming import new_run_id
from llmb_tui.launch.procedure_loader import procedure, unavailable
from llmb_tui.launch.runai.workload import (
    FILES,
    MOST,
    Placement,
    creation_request,
    packed_files,
    problems,
    start_script,
    workload_name,
)
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from llmb_tui.store.paths import UserPaths
from tests.kit.runai_models import model
from tests.kit.runs import CATALOG
from tests.launch.launch_cases import PROFILE as SLURM
from tests.launch.runai.workload_cases import NEMOTRON_340B, PLACED, PROFILE, RUN_ID, SMALL, intent, request_of, spec_of

LLAMA = Selection("llama3.1", "25.04", "70b", "h100", "bf16", 64)
GB200 = Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128)


def check(name: str, body: dict[str, Any]) -> None:
    """Check that the body is valid by NVIDIA's model, without additional fields."""
    known = model(name).from_dict(body).model_dump(by_alias=True)

    def compare(part: Any, whole: Any) -> None:
        if isinstance(part, dict):
            for key, value in part.items():
                assert key in whole
                compare(value, whole[key])
        elif isinstance(part, list):
            for one, other in zip(part, whole, strict=True):
                compare(one, other)
        else:
            assert part == whole

    compare(body, known)


def unpacked(text: str) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text, validate=True)), mode="r:gz") as archive:
        return {one.name: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]


@pytest.mark.parametrize("selection", [NEMOTRON_340B, GB200, LLAMA], ids=lambda one: f"{one.workload}-{one.gpu}")
def test_a_run_on_several_nodes_is_one_distributed_workload(selection: Selection) -> None:
    spec = spec_of(request_of(selection))
    body = creation_request(spec, PLACED)
    assert spec.kind == "distributed"
    check("DistributedCreationRequest", body)
    assert body["masterSpecSameAsWorker"] is True
    assert body["spec"]["numWorkers"] + 1 == spec.nodes
    assert body["spec"]["numWorkers"] * spec.gpus_per_node + spec.gpus_per_node == selection.scale
    assert (body["spec"]["backoffLimit"], body["spec"]["restartPolicy"]) == (0, "Never")
    assert (body["projectId"], body["clusterId"], body["useGivenNameAsPrefix"]) == ("4500105", PLACED.cluster_id, False)


def test_a_run_on_one_node_is_one_training_workload() -> None:
    spec = spec_of(request_of(SMALL))
    body = creation_request(spec, PLACED)
    assert (spec.kind, spec.nodes) == ("trainings", 1)
    check("TrainingCreationRequest", body)
    assert not {"masterSpecSameAsWorker", "distributedFramework", "numWorkers"} & {*body, *body["spec"]}


def test_all_settings_of_the_profile_are_in_the_request() -> None:
    profile = replace(
        PROFILE,
        node_pool="h100",
        image_pull_secret="dockerreg-nvcr",
        hub_credential="huggingface",
        env=(("NCCL_DEBUG", "WARN"), ("QUOTED", "a 'b' \"c\" $(d)")),
    )
    request = request_of(LLAMA, profile, hub_tokenizer=True)
    spec = spec_of(request)
    body = creation_request(spec, replace(PLACED, hub_secret=("genericsecret-huggingface", "HF_TOKEN")))
    check("DistributedCreationRequest", body)
    assert body["spec"]["nodePools"] == ["h100"]
    assert body["spec"]["imagePullSecrets"] == [{"name": "dockerreg-nvcr", "userCredential": False}]
    assert body["spec"]["storage"]["pvc"] == [
        {"name": "data", "path": "/data", "existingPvc": True, "claimName": "llmb-data"}
    ]
    variables = {variable["name"]: variable for variable in body["spec"]["environmentVariables"]}
    assert len(variables) == len(body["spec"]["environmentVariables"])
    assert variables["HF_TOKEN"] == {
        "name": "HF_TOKEN",
        "secret": {"name": "genericsecret-huggingface", "key": "HF_TOKEN"},
    }
    assert variables["QUOTED"]["value"] == "a 'b' \"c\" $$(d)", "Kubernetes would replace the variable in the brackets"
    assert json.loads(as_json(body)) == body


def test_empty_fields_are_omitted_and_the_project_default_applies() -> None:
    body = creation_request(spec_of(request_of(NEMOTRON_340B, replace(PROFILE, mounts=(), work_dir=""))), PLACED)
    assert not {"nodePools", "storage", "imagePullSecrets"} & set(body["spec"])
    assert "nemo_experiments" not in body["spec"]["args"]


def test_names_are_unique_short_and_end_with_the_id() -> None:
    ids = {new_run_id(1_760_000_000.0) for _ in range(50)}
    names = {workload_name("pretrain_nemotron4-340b_fp8_gpus256_tp8_pp4_cp2_vp12_mbs1_gbs64", one) for one in ids}
    assert len(names) == len(ids)
    for name in names | {workload_name("Llama3.1 70B__", RUN_ID), workload_name("a", RUN_ID)}:
        assert len(f"{name}-worker-1023") <= 63
        assert name.strip("abcdefghijklmnopqrstuvwxyz0123456789-") == ""
        assert name.rpartition("-")[2] in ids | {RUN_ID}
        assert name[0].isalpha()
        assert "--" not in name
    assert workload_name("pretrain_nemotron4-340b_fp8_gpus256", RUN_ID) == f"pretrain-nemotron4-340b-fp8-{RUN_ID}"
    assert workload_name("x" * 80, RUN_ID) == f"{'x' * 34}-{RUN_ID}"


ODD = st.text(st.sampled_from("ab1/:.-_ '\"$(){}`;\n\\\t&|<>*é\0"), max_size=12)


def is_taken(profile: RunaiProfile) -> bool:
    try:
        check_runai_profile(profile)
    except InvalidFieldError:
        return False
    return True


@given(mount=st.tuples(ODD, ODD, ODD), below=ODD, pool=ODD, value=ODD)
def test_the_command_is_split_as_intended_for_any_profile(
    mount: tuple[str, str, str], below: str, pool: str, value: str
) -> None:
    changes: dict[str, Any] = {
        "mounts": ("{}:/{}:{}".format(*mount),),
        "work_dir": f"/data/{below}",
        "node_pool": pool,
        "env": (("ODD", value),),
    }
    taken = {field: asked for field, asked in changes.items() if is_taken(replace(PROFILE, **{field: asked}))}
    if "mounts" in taken:
        taken |= {"work_dir": ""}
    spec = spec_of(request_of(SMALL, replace(PROFILE, **taken)))
    body = creation_request(spec, PLACED)["spec"]
    assert shlex.split(f"{body['command']} {body['args']}") == ["bash", "-c", start_script(spec)]
    assert body["args"].count("'") == 2
    assert not set("\n\0") & set(body["args"])
    assert "$(" not in body["args"]
    for variable in body["environmentVariables"]:
        assert "$(" not in variable["value"].replace("$$", "")


@pytest.mark.parametrize(
    "changes",
    [
        {"mounts": ("data:/data'; true:claim",)},
        {"mounts": ("data:/da$(id):claim",)},
        {"mounts": ("data:/data\n:claim",)},
        {"mounts": ("data:data:claim",)},
        {"mounts": ("data:/nemo_run:claim",)},
        {"mounts": ("data:/data",)},
        {"mounts": ("a:/data:c", "b:/data:d")},
        {"work_dir": "/data/$(id)"},
        {"work_dir": "/data/a b"},
        {"work_dir": "/data/../etc"},
        {"work_dir": "/elsewhere"},
        {"env": (("A-B", "1"),)},
        {"env": (("A", "1\n2"),)},
        {"env": (("HF_TOKEN", "x"),)},
        {"env": (("A", "hf_" + "a" * 34),)},
        {"env": ((FILES, "x"),)},
    ],
)
def test_odd_mounts_folders_and_variables_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_runai_profile(replace(PROFILE, **changes))
    assert caught.value.fix


def test_a_start_script_that_would_be_split_is_refused() -> None:
    with pytest.raises(ValueError, match="characters that Run:ai"):
        start_script(replace(spec_of(request_of()), results="/data/'$(id)'"))


def test_packed_files_unpack_unchanged_and_are_reproducible() -> None:
    spec = spec_of(request_of())
    packed = packed_files(spec.files)
    assert packed == packed_files(spec.files)
    assert unpacked(packed) == dict(spec.files)
    assert dict(spec.files).keys() == {
        "code/pretrain.py",
        "code/start.sh",
        "configs/plan.json",
        "configs/launch.json",
    }
    assert intent(request_of()) == intent(request_of())


@given(st.dictionaries(st.text("ab/.", min_size=1).filter(lambda one: not one.endswith("/")), st.text()))
def test_any_files_unpack_unchanged(files: dict[str, str]) -> None:
    assert unpacked(packed_files(files.items())) == files


def test_files_that_are_too_large_for_the_environment_are_refused() -> None:
    noise = "".join(f"{number * number:x}" for number in range(60_000))
    with pytest.raises(LlmbError, match="are too large") as caught:
        packed_files([("a", noise)])
    assert caught.value.exit_code == 1
    assert f"{MOST:,}" in caught.value.why


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    profile = replace(PROFILE, node_pool="h100", env=(("NCCL_DEBUG", "WARN"),))
    for number, selection in enumerate((NEMOTRON_340B, SMALL)):
        run, _ = intent(request_of(selection, profile), run_id=f"251121080102{number:04}")
        runs.save(run)
        read = Runs(UserPaths(tmp_path / "config", tmp_path / "state")).load(run.id)
        assert read == run
        assert isinstance(read.spec, RunaiSpec)
        assert read.job_name == read.spec.workload
        assert read.job_log is not None
        assert read.results == f"/data/llmb/{read.spec.workload}"


def said(request: RunRequest, severity: str = "error") -> dict[str, str]:
    return {
        problem.field: f"{problem.reason} {problem.fix}"
        for problem in problems(request)
        if problem.severity == severity
    }


@pytest.mark.parametrize("recipe", ["llama3.1@24.11", "grok1@25.02"])
def test_recipes_of_nemo_1_are_refused(recipe: str) -> None:
    (problem,) = unavailable("runai", CATALOG.recipe(*recipe.split("@")))
    assert "NeMo 1" in problem.reason
    assert "Slurm" in problem.fix
    size, dtype, scale = ("405b", "bf16", 576) if recipe.startswith("llama") else ("314b", "bf16", 64)
    workload, _, release = recipe.partition("@")
    request = request_of(Selection(workload, release, size, "h100", dtype, scale))
    assert "NeMo 1" in said(request)["procedure"]
    assert not said(request, "note")  # the note for NeMo 2 recipes on Slurm, that the recipe also runs there, is absent
    with pytest.raises(LlmbError, match="cannot be launched"):
        spec_of(request)


def test_recipes_that_are_not_published_for_runai_have_a_note() -> None:
    assert not list(problems(request_of(NEMOTRON_340B)))
    (note,) = procedure("runai").preview(request_of(LLAMA)).problems
    assert (note.severity, note.field) == ("note", "procedure")
    assert "llama3.1@25.04 for Slurm only" in note.reason


@pytest.mark.parametrize("option", ["profile", "nccl_trace"])
def test_options_that_need_slurms_variables_are_refused(option: str) -> None:
    request = request_of(LLAMA, PROFILE, **{option: True})
    assert "Slurm's variables" in said(request)[option]
    with pytest.raises(LlmbError, match="cannot be launched"):
        spec_of(request)


def test_checkpoints_need_a_volume() -> None:
    bare = replace(PROFILE, mounts=(), work_dir="")
    assert "deleted with the pods" in said(request_of(LLAMA, bare, save_checkpoint=True))["save_checkpoint"]
    assert not said(request_of(LLAMA, save_checkpoint=True))
    assert not said(request_of(LLAMA, load_checkpoint="/data/llmb/ckpt"))
    for elsewhere in ("/scratch/ckpt", "/database/ckpt"):
        assert "not on a volume" in said(request_of(LLAMA, load_checkpoint=elsewhere))["load_checkpoint"]


def test_a_tokenizer_of_the_hub_needs_a_credential() -> None:
    assert "no credential" in said(request_of(LLAMA, hub_tokenizer=True))["hub_tokenizer"]
    known = replace(PROFILE, hub_credential="huggingface")
    assert not said(request_of(LLAMA, known, hub_tokenizer=True))
    assert spec_of(request_of(LLAMA, known)).hub_credential is None


def test_deviations_from_the_recipe_are_recorded() -> None:
    spec = spec_of(request_of(NEMOTRON_340B, replace(PROFILE, env=(("NVTE_FUSED_ATTN", "0"),))))
    overridden = {name: theirs for name, _, theirs in spec.overridden}
    assert overridden == {"NVTE_FUSED_ATTN": "0"}
    assert dict(spec.env)["NVTE_FUSED_ATTN"] == "0"


def test_a_cluster_of_another_kind_is_refused() -> None:
    request = replace(request_of(), profile=SLURM)
    with pytest.raises(LlmbError, match="is not a Run:ai cluster"):
        procedure("runai").preview(request)


def test_a_request_names_no_optional_placement_by_default() -> None:
    body = creation_request(spec_of(request_of()), Placement("7", "8"))
    assert (body["projectId"], body["clusterId"]) == ("7", "8")
    assert "HF_TOKEN" not in json.dumps(body)
