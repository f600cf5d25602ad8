from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.cluster.runai.profile import RunaiProfile, from_environment
from llmb_tui.cluster.runai.profile_check import check_runai_profile, split_claim

GOOD = RunaiProfile(
    "runai",
    "https://acme.run.ai/api/v1",
    "llmb-app",
    "bench",
    mounts=("data:/data:shared-data", "work:/work:shared-work"),
    work_dir="/work/llmb",
    node_pool="h100",
    kubeconfig="~/.kube/config",
    hub_credential="hub",
    env=(("NCCL_DEBUG", "INFO"),),
)


def test_a_profile_that_is_right() -> None:
    check_runai_profile(GOOD)
    check_runai_profile(RunaiProfile("a", "https://[::1]:8443/api/v1", "0b5c-11", "team.a"))
    check_runai_profile(replace(GOOD, work_dir="/work"))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "two words"}, "name"),
        ({"base_url": "http://acme.run.ai/api/v1"}, "base_url"),
        ({"base_url": "https://acme.run.ai"}, "base_url"),
        ({"base_url": "https://me:secret@acme.run.ai/api/v1"}, "base_url"),
        ({"base_url": "https://acme.run.ai/api/v1\n"}, "base_url"),
        ({"base_url": "https://acme.run.ai:70000/api/v1"}, "base_url"),
        ({"app_id": ""}, "app_id"),
        ({"project": "a,b==c"}, "project"),
        ({"node_pool": "-x"}, "node_pool"),
        ({"kubeconfig": ""}, "kubeconfig"),
        ({"ca_file": ""}, "ca_file"),
        ({"hub_credential": "hf_abcdefghijklmnopqrstuvwxyz"}, "hub_credential"),
        ({"mounts": ("/scratch/hf",)}, "mounts"),
        ({"mounts": ("a:/data:c", "b:/data/:d")}, "mounts"),
        ({"mounts": ("a:/data:c", "a:/more:d")}, "mounts"),
        ({"mounts": ("a:/nemo_run:c",)}, "mounts"),
        ({"mounts": ("a:/../x:c",)}, "mounts"),
        ({"work_dir": "/elsewhere"}, "work_dir"),
        ({"work_dir": "/workers"}, "work_dir"),
        ({"work_dir": "/work/../data"}, "work_dir"),
        ({"mounts": (), "work_dir": "/work"}, "work_dir"),
        ({"env": (("HF_TOKEN", "x"),)}, "env.HF_TOKEN"),
        ({"env": (("lower", "x"),)}, "env"),
    ],
)
def test_the_first_field_that_is_wrong_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_runai_profile(replace(GOOD, **changes))  # type: ignore[arg-type]
    assert caught.value.field == field
    assert caught.value.fix


def test_a_mount_in_its_parts() -> None:
    assert split_claim("data:/data/:shared.data") == ("data", "/data", "shared.data")


def test_the_recipes_variables_are_defaults_but_for_the_secret() -> None:
    profile = from_environment(
        {
            "BASE_URL": "https://acme.run.ai/api/v1/",
            "APP_ID": "llmb-app",
            "APP_SECRET": "canary",
            "PROJECT_NAME": "bench",
            "RUN_CONF_MOUNTS": "data:/data:shared-data, work:/work:shared-work,",
            "PVC_DIR": "/work/llmb",
        }
    )
    assert replace(profile, name="runai") == replace(GOOD, node_pool=None, kubeconfig=None, hub_credential=None, env=())
    assert "canary" not in repr(profile)
    assert from_environment({}).base_url == ""


def test_the_place_and_share_of_a_profile() -> None:
    assert (GOOD.place, GOOD.share) == ("acme.run.ai", "project bench, node pool h100")
    assert GOOD.route == replace(GOOD, name="other", node_pool=None).route
    assert GOOD.route != replace(GOOD, project="p").route  # one object represents one project
