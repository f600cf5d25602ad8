"""Installs that fail, on a real login node and a real Slurm: each ends with an error and its remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.secrets import forget_secret, give_secret
from llmb_tui.launch.step_state import StepState
from tests.kit.reasons import FULL_DISK, install_reason
from tests.rig.cluster import Rig
from tests.rig.install.site import IMAGE, BackgroundInstall, Site, enroot_on_nodes_only
from tests.rig.install.terminal import Terminal, environment

DONE = ["done", "done", "done"]
REGISTRY = {
    "no-network": ("curl: (6) Could not resolve host: nvcr.io", "cannot reach the container registry", "https_proxy"),
    "timeout": (
        "curl: (28) Failed to connect to nvcr.io port 443 after 30001 ms: Timeout was reached",
        "cannot reach the container registry",
        "https_proxy",
    ),
    "not-json": ("curl: (22) The requested URL returned error: 401", "denied access to the image", "NGC API key"),
    "forbidden": (
        "[ERROR] URL https://nvcr.io/v2/nvidia/nemo/manifests/25.02.01 returned error code: 403 Forbidden",
        "denied access to the image",
        "NGC API key",
    ),
    "not-found": (
        "[ERROR] URL https://nvcr.io/v2/nvidia/nemo/manifests/25.02.01 returned error code: 404 Not Found",
        "no image with this name and tag",
        "withdrawn",
    ),
    "too-many": ("[ERROR] URL https://nvcr.io/proxy_auth returned error code: 429", "limits", "Wait some minutes"),
    "no-space": ("Write failed because No space left on device", "is full", "Free some space"),
}


def failed_image(states: tuple[StepState, ...]) -> StepState:
    assert [state.status for state in states] == ["done", "failed", "missing"]
    return states[1]


@pytest.mark.parametrize("fault", REGISTRY)
def test_a_fault_of_enroot_is_quoted_and_explained(site: Site, fault: str) -> None:
    line, reason, fix = REGISTRY[fault]
    with site.rig.knob("faults/enroot", fault):
        state = failed_image(site.run())
    assert state.detail == line
    assert reason in state.reason
    assert fix in state.fix
    assert site.images() == []
    assert site.installer().probe()[1] == state
    assert [state.status for state in site.run()] == DONE


def test_a_full_disk_is_reported_and_leaves_no_partial_file(site: Site, rig: Rig) -> None:
    with rig.full_disk(site.install):
        state = failed_image(site.run())
        assert "No space left on device" in state.detail
        assert state.reason == install_reason(FULL_DISK)
        assert state.fix.startswith("Free some space, or choose another install directory")
        names = rig.as_operator(f"ls -A {site.image.parent}").stdout
        assert names == ""
        rig.as_root(["mount", "-o", "remount,size=40m", str(site.install)], check=True)
        assert [state.status for state in site.run()] == DONE


def test_a_completely_full_disk_is_reported(site: Site, rig: Rig) -> None:
    with rig.full_disk(site.install):
        assert site.installer().probe()[0].status == "missing"
        with rig.knob("import-s", "20"):
            run = BackgroundInstall(site.installer())
            run.until_running()
            rig.as_operator(f"cat /dev/zero >{site.install}/filler 2>/dev/null")
            state = failed_image(run.join())
        assert "is full" in state.reason
        assert "is full" in failed_image(site.run()).reason
        rig.as_operator(f"rm {site.install}/filler", check=True)
        rig.as_root(["mount", "-o", "remount,size=40m", str(site.install)], check=True)
        assert [state.status for state in site.run()] == DONE


def test_an_install_directory_of_another_user_is_reported(site: Site) -> None:
    site.install.chmod(0o700)
    site.rig.as_root(["chown", "root", str(site.install)], check=True)
    with pytest.raises(LlmbError, match="install directory cannot be written") as caught:
        site.run()
    assert "Permission denied" in caught.value.why
    assert "Choose an install directory" in caught.value.fix


def test_a_job_that_slurm_refuses_is_reported(site: Site, rig: Rig) -> None:
    profile = rig.profile(install_dir=str(site.install), account="nobodys")
    with enroot_on_nodes_only(rig):
        state = failed_image(site.run(profile))
    assert "Invalid account" in state.detail
    assert state.reason == "Slurm rejected the job of this step."
    assert "account" in state.fix


def test_an_enroot_that_starts_on_nodes_only_imports_in_a_job(site: Site, rig: Rig) -> None:
    """A directory of its configuration exists on the nodes only."""
    conf = rig.directory / "etc" / "enroot" / "enroot.conf"
    before = conf.read_text()
    conf.write_text("ENROOT_RUNTIME_PATH $([ $(hostname) = login01 ] && echo /proc/no || echo /tmp/enroot-$(id -u))\n")
    try:
        states = site.run()
    finally:
        conf.write_text(before)
    assert [state.status for state in states] == DONE
    assert "Host: cn" in site.image.read_bytes()[:500].decode(errors="replace")


def test_a_controller_that_is_down_is_reported(site: Site, rig: Rig) -> None:
    with enroot_on_nodes_only(rig), rig.controller_down():
        state = failed_image(site.run())
    assert "Unable to contact slurm controller" in state.detail
    assert "scontrol ping" in state.fix


def verb(site: Site, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a verb without a terminal, with separate settings and state."""
    site.services().clusters.close()
    command = [sys.executable, "-m", "llmb_tui", *words]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, env=environment(site), timeout=300
    )


SELECTION = "-w nemotron4@25.04 -s 15b --gpu h100 -d fp8 --scale 16".split()


def test_install_explains_how_to_store_a_key_if_the_registry_requires_it(site: Site, rig: Rig) -> None:
    name = site.profile.name
    with rig.knob("needs-key", "nvapi-the-right-one"):
        refused = verb(site, "install", name, *SELECTION)
        assert refused.returncode == 2
        assert "The container registry denied access to the image." in refused.stderr
        assert "returned error code: 401 Unauthorized" in refused.stderr
        assert f"`llmb-tui secrets {name} --give ngc` asks for it, or reads it from stdin." in refused.stderr
        reply = verb(site, "secrets", name, "--give", "ngc", stdin="nvapi-the-right-one\n")
        assert reply.returncode == 0, reply.stderr
        installed = verb(site, "install", name, *SELECTION, "--json")
    assert installed.returncode == 0, installed.stderr
    assert [state["status"] for state in json.loads(installed.stdout)] == DONE
    assert (
        "nvapi-the-right-one" not in refused.stderr + reply.stdout + reply.stderr + installed.stderr + installed.stdout
    )


def test_install_prompts_for_a_key_at_a_terminal_tests_it_and_continues(site: Site, rig: Rig) -> None:
    site.services().clusters.close()
    with rig.knob("needs-key", "nvapi-the-right-one"), Terminal(site, "install", site.profile.name, *SELECTION) as user:
        user.until("Create one at https://org.ngc.nvidia.com/setup/api-keys.")
        user.until("NGC API key: ")
        user.enter("nvapi-the-right-one")
        user.until("could not be tested from the cluster")
        user.until("Also store it in this computer's keyring? [y/N] ")
        user.enter("n")
        user.until("readable only by you.")
        assert user.exit_code() == 0
        assert "nvapi-the-right-one" not in user.output
    assert site.images() == [f"{IMAGE}.sqsh"]


def test_the_secrets_verb_lists_stores_and_removes_keys(site: Site) -> None:
    name = site.profile.name
    assert verb(site, "secrets", name, "--give", "ngc").returncode == 1
    assert verb(site, "secrets", name, "--give", "hugging-face", stdin="hf_a-token-of-mine\n").returncode == 0
    answer = json.loads(verb(site, "secrets", name, *SELECTION, "--json").stdout)
    assert [(state["id"], state["on_cluster"]) for state in answer["secrets"]] == [
        ("ngc", False),
        ("hugging-face", True),
    ]
    assert [(need["id"], need["required"]) for need in answer["needs"]] == [("ngc", False)]
    assert [test["result"] for test in answer["tests"]] == ["not tested"]
    assert "Hugging Face token  stored by llmb-tui" in verb(site, "secrets", name).stdout
    assert verb(site, "secrets", name, "--forget", "hugging-face").returncode == 0
    assert not (site.rig.home / ".llmb-tui/hugging-face-token").exists()


SECRET = "nvapi-a-secret-that-must-not-be-seen"


def test_a_secret_is_seen_nowhere(site: Site, rig: Rig) -> None:
    """During a whole install no argument, log or other file contains the key, here and on the cluster."""
    netrc = rig.home / ".config/enroot/.credentials"
    rig.as_operator("mkdir -p ~/.config/enroot && echo 'machine example.org login me password mine' >"
                    " ~/.config/enroot/.credentials", check=True)  # fmt: skip
    rig.set("import-s", "4")
    with rig.knob("needs-key", SECRET):
        services = site.services()
        message = give_secret(services.clusters.login_node(site.profile.name), "ngc", f" {SECRET}\n", keep=False)
        states: list[tuple[StepState, ...]] = []
        run = BackgroundInstall(site.installer())
        processes: list[str] = []
        while not run.over:
            processes += rig.operator_processes()
        states = [*run.changes, run.join()]
        services.clusters.close()
    assert [state.status for state in states[-1]] == DONE
    assert any("enroot import" in line for line in processes)
    assert "Using credentials from file: /home/operator/.llmb-tui/enroot/.credentials" in site.log()
    assert SECRET not in "\n".join([*processes, message, repr(states)])
    holding = _files_with(SECRET, site.places.config, site.places.state, rig.home, site.install, rig.directory / "log")
    credentials = rig.home / ".llmb-tui/enroot/.credentials"
    assert holding == [credentials]
    assert credentials.stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (credentials.parent, credentials.parent.parent)} == {0o700}
    assert netrc.read_text() == "machine example.org login me password mine\n"
    assert site.images() == [f"{IMAGE}.sqsh"]


def _files_with(text: str, *folders: Path) -> list[Path]:
    paths = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
                paths.append(path)
    return paths


def test_a_key_that_was_given_is_used_in_a_job_too(site: Site, rig: Rig) -> None:
    services = site.services()
    give_secret(services.clusters.login_node(site.profile.name), "ngc", SECRET, keep=False)
    with enroot_on_nodes_only(rig), rig.knob("needs-key", SECRET):
        assert [state.status for state in site.run()] == DONE
        forget_secret(services.clusters.login_node(site.profile.name), "ngc")
        site.image.unlink()
        assert site.run()[1].key_would_help
    services.clusters.close()
