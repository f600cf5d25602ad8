"""The preflight against a real Slurm on a real login node: everything right, then one thing wrong at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Selection
from llmb_tui.preflight.kinds import cluster_checks
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Preflight
from llmb_tui.preflight.run import run_preflight
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.rig.preflight.conftest import Look
from tests.rig.preflight.site import by_id, sources, web_server
from tests.rig.recorded_calls import recorded_calls

# How full this machine is, is not for these tests to say.
_ROOM = {"disk", "enroot-space"}
SLURM = ("sinfo", "scontrol", "sacctmgr", "squeue", "sacct", "srun", "sbatch")


def test_a_good_cluster_passes_and_nothing_is_queued(rig: Rig, look: Look) -> None:
    # Accounting may hear of jobs before it only now.
    first = int(re.findall(r"NEXT_JOB_ID *= *(\d+)", rig.as_root("scontrol show config").stdout)[0])
    found = look()
    assert {name: check.status for name, check in found.items() if check.status != "ok"}.keys() <= _ROOM
    assert (
        list(found)
        == (
            "scheduler controller account partition time-limit nodes gpus gpu-request cpu trial pyxis pmix "
            "enroot enroot-settings enroot-space install-dir disk python environment environment-paths registry git hub"
        ).split()
    )
    assert found["nodes"].found == "4 working of 4"
    assert found["account"].found == "llmbench"
    assert "x86_64" in found["cpu"].found
    assert (found["registry"].found, found["git"].found) == ("reached (HTTP 401)", "reached (git ls-remote)")
    assert rig.squeue() == []
    assert [job for job in map(int, rig.as_root("sacct -X -n -a -o jobid").stdout.split()) if job >= first] == []


def test_a_line_that_is_cut_meanwhile_is_made_again(rig: Rig, job: Plan, servers: str) -> None:
    """In the answer of the first group, once."""
    reports: list[Preflight] = []
    with Line(rig.port()) as line, closing(SlurmCluster(line.profile(rig.profile()))) as session:
        session.connect()
        line.cut_after(bytes_down=400)
        report = run_preflight(
            session, cluster_checks(Needs(rig.profile(), job, sources=sources(servers))), reports.append
        )
        assert (line.cuts, line.connections) == (1, 2)
    assert [check for check in report.failed if check.id not in _ROOM] == []
    assert len(reports) == 4


def test_known_facts_are_reported_so_far(rig: Rig, session: SlurmCluster, job: Plan, servers: str) -> None:
    reports: list[Preflight] = []
    report = run_preflight(session, cluster_checks(Needs(rig.profile(), job, sources=sources(servers))), reports.append)
    assert len(reports) == 4
    assert reports[-1] == report
    for earlier, later in pairwise(reports):
        assert later.checks[: len(earlier.checks)] == earlier.checks
        assert len(later.checks) > len(earlier.checks)


def test_without_a_plan_the_cluster_is_judged_on_its_own(look: Look) -> None:
    found = look(None)
    assert "trial" not in found
    assert {name: check.status for name, check in found.items() if check.status != "ok"}.keys() <= _ROOM


@pytest.mark.parametrize(
    ("changes", "check", "status", "words"),
    [
        ({"account": "nope"}, "account", "failed", ("llmbench", "llmb_other")),
        ({"account": "llmb_other"}, "account", "ok", ("llmb_other", "")),
        ({"account": "LLMBench"}, "account", "ok", ("llmbench", "")),
        ({"account": "LLMBench", "qos": "NORMAL"}, "qos", "ok", ("normal", "")),
        ({"account": "LLMBench", "qos": "NORMAL"}, "trial", "ok", ("could start at", "")),
        ({"partition": "nope"}, "partition", "failed", ("batch, debug, small, cpu", "one of these")),
        ({"partition": "small"}, "gpus", "failed", ("4 × gb200", "such as batch")),
        ({"partition": "small"}, "nodes", "failed", ("none with these GPUs", "whose nodes have them")),
        ({"partition": "cpu"}, "gpus", "failed", ("no GPUs in cpu; batch has 8 × h100", "such as batch or debug")),
        ({"partition": "cpu"}, "gpu-request", "ok", ("counts GPUs", "")),
        ({"partition": "cpu", "gpu_request": "none"}, "gpus", "failed", ("no GPUs in cpu", "such as batch")),
        ({"partition": "batch,cpu"}, "gpus", "warning", ("none in cpu", "does not start in cpu")),
        ({"partition": "batch,cpu", "gpu_request": "none"}, "gpus", "failed", ("none in cpu", "without any")),
        ({"partition": "batch,cpu"}, "trial", "failed", ("Node count specification invalid", "with this message")),
        ({"partition": "debug"}, "nodes", "failed", ("at most 2 for one job", "more nodes")),
        ({"partition": "batch,debug"}, "partition", "ok", ("batch, up", "")),
        ({"gpu_request": "gres"}, "trial", "ok", ("could start at", "")),
        ({"gpu_request": "none"}, "gpu-request", "warning", ("counts GPUs", "gpus-per-node")),
        ({"qos": "short"}, "qos", "failed", ("short allows 8 GPUs; short allows 00:10:00", "fewer GPUs")),
        ({"qos": "gold"}, "qos", "failed", ("normal, short", "QOS")),
        ({"reservation": "nope"}, "reservation", "failed", ("no reservation", "Remove")),
        ({"constraint": "rack7"}, "constraint", "failed", ("no node has rack7", "constraint")),
        ({"exclude": "cn[001,999]"}, "exclude", "failed", ("cn999", "list of nodes")),
        ({"exclude": "gn001"}, "exclude", "ok", ("known", "")),
        ({"exclude": "cn001"}, "trial", "failed", ("configuration is not available", "with this message")),
        ({"segment": 2}, "segment", "failed", ("Slurm 22.05", "sbatch does not have")),
        ({"slurm_params": "switches=1;nodelist=cn[001-004]"}, "trial", "ok", ("could start at", "")),
        ({"slurm_params": "licenses=gold"}, "trial", "failed", ("license specification", "with this message")),
        ({"install_dir": "/proc/llmb"}, "install-dir", "failed", ("/proc is not writable", "write")),
    ],
)
def test_each_wrong_setting_is_found(
    look: Look, changes: dict[str, Any], check: str, status: str, words: tuple[str, str]
) -> None:
    one = look(**changes)[check]
    assert one.status == status, one
    assert words[0] in one.found
    assert words[1] in one.fix


def test_a_longer_job_than_the_partition_allows(look: Look, catalog: Catalog) -> None:
    long = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 32, time_limit="09:00:00"))
    assert look(long)["time-limit"].status == "failed"


def test_more_nodes_than_there_are(look: Look, catalog: Catalog) -> None:
    large = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64))
    assert (look(large)["nodes"].status, look(large)["nodes"].needed) == ("failed", "8 × 8 H100")


def test_an_image_for_grace_does_not_run_on_these_nodes(look: Look, catalog: Catalog) -> None:
    grace = plan(catalog, Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128))
    found = look(replace(grace, nodes=2), partition="small")
    assert (found["gpus"].status, found["nodes"].status, found["cpu"].status) == ("ok", "ok", "failed")


def test_a_hidden_partition_is_used_only_if_it_is_named(
    rig: Rig, look: Look, session: SlurmCluster, catalog: Catalog
) -> None:
    grace = plan(catalog, Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128))
    with rig.hidden_partition("small"):
        assert "small" not in rig.as_operator(["sinfo"], check=True).stdout
        found = look(replace(grace, nodes=2), partition="small", exclude="gn002")
        wrong = look(None, partition="nope")
        rig.as_root("scontrol update NodeName=gn001 State=DRAIN Reason='fan broken'", check=True)
        try:
            bad_nodes = session.bad_nodes("gn[001-002]")
        finally:
            rig.as_root("scontrol update NodeName=gn001 State=RESUME", check=True)
    assert [found[name].status for name in ("partition", "nodes", "gpus", "exclude")] == ["ok"] * 4
    assert found["nodes"].found == "2 working of 2"
    assert found["cpu"].found == "nodes x86_64", "and so not what the image needs"
    assert bad_nodes == ("gn001 is drained: fan broken",)
    assert wrong["partition"].found == "batch, debug, cpu", "nobody is told to choose a hidden one"


def test_a_reservation_is_found_and_too_small(rig: Rig, look: Look) -> None:
    with rig.reservation(nodes="cn001"):
        found = look(reservation="bench")["reservation"]
        assert (found.status, found.found) == ("failed", "bench has 1 nodes")
    with rig.reservation(nodes="cn[001-004]"):
        assert look(reservation="bench")["reservation"].status == "ok"
    with rig.reservation(nodes="cn[001-004]", users="root"):
        assert "does not allow operator" in look(reservation="bench")["reservation"].found


def test_a_node_that_is_down_is_a_warning_and_the_trial_does_not_gate(rig: Rig, look: Look) -> None:
    with rig.node_down("cn003"):
        found = look()
    assert (found["nodes"].status, found["nodes"].found) == ("warning", "3 working of 4")
    assert found["trial"].status == "warning"


def test_a_hung_controller_costs_one_wait(rig: Rig, look: Look) -> None:
    with rig.controller_hung(), recorded_calls(rig, *SLURM) as calls:
        found = look()
        asked = calls()
    assert (found["controller"].status, found["controller"].found) == (
        "failed",
        "Slurmctld(primary) at login01 is DOWN",
    )
    assert found["account"].status == "ok"
    assert not {"partition", "nodes", "trial", "pyxis", "pmix"} & set(found)
    assert {"enroot", "disk", "registry"} <= set(found)
    # Whatever else asks the controller would wait for 10 s too. sacctmgr asks the database.
    assert [call for call in asked if not call.startswith("sacctmgr ")] == ["sinfo --version", "scontrol ping"]


def test_a_controller_that_is_down(rig: Rig, look: Look) -> None:
    with rig.controller_down():
        assert look()["controller"].status == "failed"


def test_an_account_that_cannot_be_checked_is_a_warning(rig: Rig, look: Look) -> None:
    with rig.database_down():
        found = look(qos="normal")
    assert (found["account"].status, found["qos"].status) == ("warning", "warning")
    assert "Connection refused" in found["account"].found


def test_a_cluster_that_keeps_no_accounts(
    rig_without_accounting: Rig, job: Plan, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    profile = rig_without_accounting.profile()
    session = SlurmCluster(profile)
    found = by_id(run_preflight(session, cluster_checks(Needs(profile, job, sources=sources(servers)))))
    session.close()
    assert (found["account"].status, found["account"].found) == ("ok", "this cluster has no accounting")
    assert found["trial"].status == "ok"


@contextmanager
def _hidden(rig: Rig, pattern: str) -> Iterator[None]:
    """On the cluster the files of a pattern are empty and not executable."""
    paths = rig.as_root(f"ls -d {pattern}").stdout.split()
    assert paths
    for path in paths:
        rig.as_root(["mount", "--bind", "/dev/null", path], check=True)
    try:
        yield
    finally:
        for path in paths:
            rig.as_root(["umount", path], check=True)


def test_a_pmix_plugin_without_its_library(rig: Rig, look: Look) -> None:
    with _hidden(rig, "/usr/lib/*/libpmix.so.2"):
        found = look()["pmix"]
    assert (found.status, "libpmix2" in found.fix) == ("failed", True), found
    assert "PMIx library" in found.found


def test_a_slurm_without_pyxis(rig: Rig, look: Look) -> None:
    plugstack = rig.directory / "etc" / "slurm" / "plugstack.conf"
    before = plugstack.read_text()
    try:
        plugstack.write_text("# nothing\n")
        found = look()["pyxis"]
    finally:
        plugstack.write_text(before)
    assert (found.status, found.found) == ("failed", "srun does not have --container-image")


def test_a_login_node_without_enroot_imports_in_a_job(rig: Rig, look: Look, unused_port: int) -> None:
    enroot = next(path for path in rig.directory.glob("bin/enroot"))
    aside = enroot.with_name("aside")
    enroot.rename(aside)
    try:
        found = look(address=f"http://127.0.0.1:{unused_port}", cpu_partition="cpu")
    finally:
        aside.rename(enroot)
    assert (found["enroot"].status, "in partition cpu" in found["enroot"].fix) == ("warning", True)
    assert found["registry"].status == "warning"
    assert "enroot-space" not in found


def test_settings_of_enroot_are_shown_as_enroot_reads_them(rig: Rig, look: Look) -> None:
    folder = rig.directory / "etc" / "enroot"
    conf = folder / "enroot.conf"
    before = conf.read_text()
    conf.write_text("#ENROOT_DATA_PATH /no\nENROOT_TEMP_PATH   ${HOME}/tmp/$(id -u)\nENROOT_REMAP_ROOT=no\n")
    (folder / "hooks.d").rename(folder / "aside")
    try:
        found = look()
    finally:
        conf.write_text(before)
        (folder / "aside").rename(folder / "hooks.d")
    assert found["enroot"].found == "enroot 3.5.0; TEMP_PATH /home/operator/tmp/4100; REMAP_ROOT no"
    settings = found["enroot-settings"]
    lacking = "no hook 50-slurm-pytorch.sh, no ENROOT_REMAP_ROOT, no ENROOT_ROOTFS_WRITABLE"
    assert (settings.status, settings.found) == ("warning", f"{lacking} in {folder} of the login node")


def test_a_directory_of_another_user(rig: Rig, look: Look) -> None:
    folder = rig.new_dir()
    folder.chmod(0o555)
    found = look(install_dir=f"{folder}/deep/down")["install-dir"]
    assert (found.status, found.found) == ("failed", f"{folder} is not writable")


def test_a_full_disk(rig: Rig, look: Look) -> None:
    folder = rig.new_dir()
    with rig.full_disk(folder, megabytes=1):
        found = look(install_dir=str(folder))
    assert (found["disk"].status, found["disk"].found) == ("failed", "1.05 MB")


def test_an_image_that_is_there_takes_no_space(rig: Rig, look: Look, unused_port: int) -> None:
    folder = rig.new_dir()
    (folder / "images").mkdir()
    (folder / "images" / "nvidia+nemo+25.02.01.sqsh").write_bytes(b"hsqs")
    os.chmod(folder / "images", 0o755)
    found = look(address=f"http://127.0.0.1:{unused_port}", install_dir=str(folder))
    assert (found["disk"].needed, found["registry"].status) == ("1 GB for runs", "ok")
    assert "enroot-space" not in found


@pytest.mark.parametrize(
    ("status", "outcome"), [(200, "ok"), (401, "ok"), (403, "ok"), (407, "failed"), (500, "failed"), (503, "failed")]
)
def test_any_answer_of_the_registry_itself_will_do(look: Look, status: int, outcome: str) -> None:
    with web_server(status) as address:
        found = look(address=address)["registry"]
    assert (found.status, f"HTTP {status}" in found.found) == (outcome, True)


def test_servers_out_of_reach_gate_what_needs_them(look: Look, unused_port: int) -> None:
    address = f"http://127.0.0.1:{unused_port}"
    direct, upstream = look(address=address), look(address=address, name="upstream")
    assert [direct[name].status for name in ("registry", "git", "hub")] == ["failed", "ok", "ok"]
    assert [upstream[name].status for name in ("registry", "git", "hub")] == ["failed", "failed", "ok"]
    assert direct["registry"].found.startswith("Failed to connect")
    assert look(address=address, cpu_partition="cpu")["registry"].status == "failed"


def test_git_is_asked_by_its_own_settings_and_asks_nobody(rig: Rig, look: Look, servers: str) -> None:
    """A mirror that only git knows of will do; a server that wants a name is not waited for."""
    mirror = rig.new_dir()
    who = "-c user.name=me -c user.email=me@here"
    rig.as_operator(
        f"git init -q {mirror}/dgxc-benchmarking.git && git -C {mirror}/dgxc-benchmarking.git {who} "
        "commit -q --allow-empty -m one",
        check=True,
    )
    settings = rig.home / ".gitconfig"
    instead = '[url "{}/"]\n\tinsteadOf = https://github.com/NVIDIA/\n'
    try:
        settings.write_text(instead.format(mirror))
        found = look(name="upstream")["git"]
        settings.write_text(instead.format(servers))
        private = look(name="upstream")["git"]
    finally:
        settings.unlink()
    assert (found.status, found.found) == ("ok", "reached (git ls-remote)")
    assert found.needed == "https://github.com/NVIDIA/dgxc-benchmarking.git, for the recipe's repository"
    assert (private.status, "terminal prompts disabled" in private.found) == ("failed", True), private


def test_wget_serves_where_there_is_no_curl(rig: Rig, look: Look) -> None:
    if rig.as_operator("command -v wget").returncode:
        pytest.fail("the rig's machine has no wget")
    with _hidden(rig, "/usr/bin/curl"):
        assert look()["registry"].found == "reached (HTTP 401)"


def test_python_serves_where_there_is_neither(rig: Rig, look: Look) -> None:
    with _hidden(rig, "/usr/bin/curl"), _hidden(rig, "/usr/bin/[w]get"):
        assert look()["registry"].found == "reached (HTTP 401)"


def test_the_upstream_procedure_needs_a_python(rig: Rig, look: Look) -> None:
    found = look(name="upstream")["python"]
    assert (found.status, "python3" in found.found) == ("ok", True)
    with _hidden(rig, "$(readlink -f /usr/bin/python3)"):
        found = look(name="upstream")["python"]
    assert (found.status, "uv" in found.fix) == ("failed", True)
