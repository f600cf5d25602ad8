"""Verbs without data name the next step; `clusters add` adds a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.failures import HostKeyUnknownError
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh.host_keys import KnownHosts, ServerKey
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import make_run, slurm

ADD = ("clusters", "add", "eos", "--host", "127.0.0.1", "--port", "9", "--account", "a", "--partition", "p")
WHOLE = (*ADD, "--install-dir", "/lustre", "--known-hosts", "/nonexistent", "--user", "me")


@pytest.fixture(autouse=True)
def services(user_places: UserPaths) -> Services:
    return Services(user_places)


def test_empty_lists_name_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    for verb, next_verb in (("clusters", "llmb-tui clusters add"), ("jobs", "llmb-tui submit")):
        assert main([verb]) == 0
        printed = capsys.readouterr()
        assert printed.out == ""
        assert next_verb in printed.err


def test_a_cluster_is_added(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WHOLE, "--json"]) == 0
    saved = slurm(*services.clusters.profiles())
    assert (saved.name, saved.host, saved.port, saved.install_dir) == ("eos", "127.0.0.1", 9, "/lustre")
    assert json.loads(capsys.readouterr().out)["known_hosts"] == "/nonexistent"
    assert main(["clusters"]) == 0
    assert "eos" in capsys.readouterr().out


def test_a_cluster_is_added_with_every_field_of_the_form(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--segment 16 --exclude cn[003,007] --memory 500G --numa-binding no --group-writable yes --gpu-request gres"
    words += " --ssh-config none --transport local"
    several = ("--mounts", "/data:/data:ro, /x:/x", "--env", "NCCL_DEBUG=INFO; A=x y")
    assert main([*WHOLE, *words.split(), *several]) == 0, capsys.readouterr().err
    saved = slurm(*services.clusters.profiles())
    assert (saved.segment, saved.exclude, saved.memory, saved.numa_binding) == (16, "cn[003,007]", "500G", False)
    assert (saved.group_writable, saved.gpu_request, saved.mounts) == (True, "gres", ("/data:/data:ro", "/x:/x"))
    assert saved.env == (("NCCL_DEBUG", "INFO"), ("A", "x y"))
    assert (saved.ssh_config, saved.transport, saved.read_only) == ("none", "local", False)


def test_a_cluster_that_is_added_with_read_only_is_read_only(services: Services) -> None:
    assert main([*WHOLE, "--read-only"]) == 0
    assert services.clusters.profiles()[0].read_only


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (ADD, "--install-dir"),
        (("clusters", "add"), "a name and --host, --account"),
        ((*WHOLE, "--port", "²"), "port"),
        ((*WHOLE, "--segment", "9" * 5000), "segment"),
        ((*WHOLE, "--vboost", "maybe"), "yes or no"),
        ((*WHOLE, "--env", "NAME"), "NAME=value"),
        ((*WHOLE, "--gpu-request", "all"), "gpus-per-node"),
        ((*WHOLE, "--account", "a;b\n"), "account"),
        ((*WHOLE, "--transport", "tube"), "ssh"),
        (("clusters", "add", "../x", *WHOLE[3:]), "name"),
    ],
)
def test_an_invalid_cluster_is_refused(
    services: Services, words: tuple[str, ...], needed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words]) == 1
    assert needed in capsys.readouterr().err
    assert services.clusters.profiles() == ()


def test_a_cluster_is_not_replaced(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    assert (main([*WHOLE]), main([*WHOLE, "--account", "other"])) == (0, 1)
    assert "eos.toml" in capsys.readouterr().err
    assert slurm(*services.clusters.profiles()).account == "a"


def test_the_path_of_a_missing_log_is_printed(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    services.clusters.save(SlurmProfile("eos", "127.0.0.1", "a", "p", "/lustre", port=9, ssh_config=NO_SSH_CONFIG))
    services.runs.save(make_run("a"))
    services.runs.save(make_run("b", submission="refused", job_ids=(), note="Slurm rejected the job."))
    assert main(["logs", "a"]) == 2, "nothing listens there"
    printed = capsys.readouterr()
    assert "Could not reach" in printed.err
    assert "Its path on eos is /lustre/llmb" in printed.err
    assert "logs a -f" in printed.err
    assert main(["logs", "b"]) == 0
    assert "Slurm rejected the job." in capsys.readouterr().err


def test_an_unknown_host_key_is_reported_with_the_way_to_accept_it(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    with pytest.raises(HostKeyUnknownError) as caught:
        KnownHosts([file]).check("Login", 2222, ServerKey("ssh-ed25519", b"key"), None)
    assert str(file) in caught.value.fix
    assert caught.value.fix.splitlines()[-1] == "[login]:2222 ssh-ed25519 a2V5"
    file.write_text(caught.value.fix.splitlines()[-1] + "\n")
    KnownHosts([file]).check("Login", 2222, ServerKey("ssh-ed25519", b"key"), None)


RUNAI = ("clusters", "add", "dgxc", "--kind", "runai")


def test_a_run_ai_cluster_is_added_by_the_recipes_variables_and_flags(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASE_URL", "https://runai.example.org/api/v1")
    monkeypatch.setenv("RUN_CONF_MOUNTS", "data:/data:claim-1")
    monkeypatch.setenv("APP_SECRET", "a-secret-of-an-application")
    assert main([*RUNAI, "--app-id", "llmb", "--json"]) == 1
    assert "--project" in capsys.readouterr().err
    assert main([*RUNAI, "--app-id", "llmb", "--project", "p", "--json"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert (document["kind"], document["base_url"]) == ("runai", "https://runai.example.org/api/v1")
    assert document["mounts"] == ["data:/data:claim-1"]
    assert "a-secret" not in printed
    (saved,) = services.clusters.profiles()
    assert (saved.place, saved.share) == ("runai.example.org", "project p")


@pytest.mark.parametrize("kind", ["slurm", "runai"])
def test_a_flag_of_the_other_kind_is_refused(kind: str, services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    if kind == "slurm":
        words, flag = [*WHOLE, "--node-pool", "h100"], "--node-pool"
    else:
        words, flag = (
            [*RUNAI, "--base-url", "https://x/api/v1", "--app-id", "a", "--project", "p", "--qos", "q"],
            "--qos",
        )
    assert main(words) == 1
    assert f"has no {flag}" in capsys.readouterr().err
    assert services.clusters.profiles() == ()
