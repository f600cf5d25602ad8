"""The preflight on a real Slurm and a real login node: first without a fault, then with one fault at a time."""

from __future__ import annotations

import os
import re
import subprocess
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

# The free space of this machine is not a subject of these tests.
_ROOM = {"disk", "enroot-space"}
SLURM = ("sinfo", "scontrol", "sacctmgr", "squeue", "sacct", "srun", "sbatch")


def test_a_good_cluster_passes_and_nothing_is_queued(rig: Rig, look: Look) -> None:
    # Accounting may receive earlier jobs only now.
    first_job = int(re.findall(r"NEXT_JOB_ID *= *(\d+)", rig.as_root("scontrol show config").stdout)[0])
    checks = look()
    assert {name: check.status for name, check in checks.items() if check.status != "ok"}.keys() <= _ROOM
    assert (
        list(checks)
        == (
            "scheduler controller account partition time-limit nodes gpus gpu-request cpu trial pyxis pmix "
            "enroot enroot-settings enroot-space install-dir disk python environment environment-paths registry git hub"
        ).split()
    )
    assert checks["nodes"].found == "4 working of 4"
    assert checks["account"].found == "llmbench"
    assert "x86_64" in checks["cpu"].found
    assert (checks["registry"].found, checks["git"].found) == ("reached (HTTP 401)", "reached (git ls-remote)")
    assert rig.squeue() == []
    assert [job for job in map(int, rig.as_root("sacct -X -n -a -o jobid").stdout.split()) if job >= first_job] == []


def test_the_preflight_reconnects_after_a_cut(rig: Rig, job: Plan, servers: str) -> None:
    """The line is cut once, in the answer of the first group."""
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


def test_without_a_plan_only_the_cluster_is_checked(look: Look) -> None:
    checks = look(None)
    assert "trial" not in checks
    assert {name: check.status for name, check in checks.items() if check.status != "ok"}.keys() <= _ROOM


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
        ({"gpu_type": "h100"}, "trial", "ok", ("could start at", "")),
        ({"gpu_type": "h100", "gpu_request": "gres"}, "trial", "ok", ("could start at", "")),
        ({"gpu_type": "H100"}, "gpu-request", "failed", ("8 × h100", "GPU type to one of these")),
        ({"partition": ""}, "partition", "ok", ("not named; Slurm uses its default, batch", "")),
        ({"partition": ""}, "trial", "ok", ("could start at", "")),
        ({"mpi": "pmi2"}, "pmix", "ok", ("pmi2", "")),
        ({"mpi": "none"}, "pmix", "ok", ("none", "")),
        ({"mpi": "openmpi"}, "pmix", "failed", ("only pmix, none, cray_shasta, pmi2", "one of these")),
        ({"memory": "1GB"}, "trial", "ok", ("could start at", "")),
        ({"memory": "9T"}, "trial", "failed", ("configuration is not available", "with this message")),
        ({"slurm_params": 'comment={"a": "b; c"};nice=1'}, "trial", "ok", ("could start at", "")),
        ({"install_dir": "/proc/llmb"}, "install-dir", "failed", ("/proc is not writable", "write")),
    ],
)
def test_each_wrong_setting_is_found(
    look: Look, changes: dict[str, Any], check: str, status: str, words: tuple[str, str]
) -> None:
    result = look(**changes)[check]
    assert result.status == status, result
    assert words[0] in result.found
    assert words[1] in result.fix


DEMANDING = """
    if job.partition ~= nil then
        slurm.log_user("Do not name a partition: this cluster chooses one.")
        return slurm.ERROR
    end
    if job.tres_per_node == nil or not string.find(job.tres_per_node, "gpu:h100:") then
        slurm.log_user("Request GPUs with their type.")
        return slurm.ERROR
    end
    if job.comment ~= '{"OccupiedIdleGPUsJobReaper":{"reason":"model_loading"}}' then
        slurm.log_user("A comment in JSON is required.")
        return slurm.ERROR
    end
    job.partition = "batch"
    return slurm.SUCCESS
"""
COMMENT = 'comment={"OccupiedIdleGPUsJobReaper":{"reason":"model_loading"}}'


def test_a_site_that_demands_type_and_comment_and_forbids_to_name_a_partition(rig: Rig, look: Look) -> None:
    steps: tuple[tuple[dict[str, Any], str, str], ...] = (
        ({}, "warning", "Do not name a partition"),
        ({"partition": ""}, "warning", "Request GPUs with their type"),
        ({"partition": "", "gpu_type": "h100"}, "warning", "A comment in JSON is required"),
        ({"partition": "", "gpu_type": "h100", "slurm_params": COMMENT}, "ok", "could start at"),
        ({"partition": "", "gpu_type": "h100", "slurm_params": COMMENT, "gpu_request": "gres"}, "ok", "could start at"),
    )
    with rig.job_rules(DEMANDING):
        for changes, status, words in steps:
            trial = look(**changes)["trial"]
            assert (trial.status, words in trial.found) == (status, True), trial


@pytest.mark.parametrize("default", ["cpu", ""])
def test_the_site_chooses_a_partition_other_than_the_default(rig: Rig, look: Look, default: str) -> None:
    with rig.job_rules('    job.partition = "batch"\n    return slurm.SUCCESS'):
        rig.as_root(["scontrol", "update", "PartitionName=batch", "Default=NO"], check=True)
        try:
            if default:
                rig.as_root(["scontrol", "update", f"PartitionName={default}", "Default=YES"], check=True)
            checks = look(partition="", gpu_type="h100")
        finally:
            rig.as_root(["scontrol", "update", "PartitionName=batch", "Default=YES"], check=True)
    assert {name: check.status for name, check in checks.items() if check.status != "ok"}.keys() <= _ROOM
    assert checks["partition"].found == f"not named; the default is {default or 'none'}"


def test_a_qos_with_a_smallest_size(rig: Rig, look: Look, catalog: Catalog) -> None:
    two_nodes = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 16))
    with rig.qos("bigonly", "MinTRES=node=4,gres/gpu=24"):
        check = look(two_nodes, qos="bigonly")["qos"]
        assert (check.status, check.wrong_request) == ("failed", True)
        assert check.found == "bigonly requires at least 24 GPUs; bigonly requires at least 4 nodes"
        assert look(qos="bigonly")["qos"].status == "ok"


def test_a_longer_job_than_the_partition_allows(look: Look, catalog: Catalog) -> None:
    long = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 32, time_limit="09:00:00"))
    assert look(long)["time-limit"].status == "failed"


def test_more_nodes_than_the_partition_has(look: Look, catalog: Catalog) -> None:
    large = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64))
    assert (look(large)["nodes"].status, look(large)["nodes"].needed) == ("failed", "8 × 8 H100")


def test_an_image_for_grace_does_not_run_on_these_nodes(look: Look, catalog: Catalog) -> None:
    grace = plan(catalog, Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128))
    checks = look(replace(grace, nodes=2), partition="small")
    assert (checks["gpus"].status, checks["nodes"].status, checks["cpu"].status) == ("ok", "ok", "failed")


def test_a_hidden_partition_is_used_only_if_it_is_named(
    rig: Rig, look: Look, session: SlurmCluster, catalog: Catalog
) -> None:
    grace = plan(catalog, Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128))
    with rig.hidden_partition("small"):
        assert "small" not in rig.as_operator(["sinfo"], check=True).stdout
        checks = look(replace(grace, nodes=2), partition="small", exclude="gn002")
        wrong = look(None, partition="nope")
        rig.as_root("scontrol update NodeName=gn001 State=DRAIN Reason='fan broken'", check=True)
        try:
            bad_nodes = session.bad_nodes("gn[001-002]")
        finally:
            rig.as_root("scontrol update NodeName=gn001 State=RESUME", check=True)
    assert [checks[name].status for name in ("partition", "nodes", "gpus", "exclude")] == ["ok"] * 4
    assert checks["nodes"].found == "2 working of 2"
    assert checks["cpu"].found == "nodes x86_64", "the image needs another architecture"
    assert bad_nodes == ("gn001 is drained: fan broken",)
    assert wrong["partition"].found == "batch, debug, cpu", "the list contains a hidden partition"


def test_a_reservation_is_found_and_too_small(rig: Rig, look: Look) -> None:
    with rig.reservation(nodes="cn001"):
        check = look(reservation="bench")["reservation"]
        assert (check.status, check.found) == ("failed", "bench has 1 nodes")
    with rig.reservation(nodes="cn[001-004]"):
        assert look(reservation="bench")["reservation"].status == "ok"
    with rig.reservation(nodes="cn[001-004]", users="root"):
        assert "does not allow operator" in look(reservation="bench")["reservation"].found


def test_a_node_that_is_down_is_a_warning_and_the_trial_does_not_gate(rig: Rig, look: Look) -> None:
    with rig.node_down("cn003"):
        checks = look()
    assert (checks["nodes"].status, checks["nodes"].found) == ("warning", "3 working of 4")
    assert checks["trial"].status == "warning"


def test_a_hung_controller_costs_one_timeout(rig: Rig, look: Look) -> None:
    with rig.controller_hung(), recorded_calls(rig, *SLURM) as calls:
        checks = look()
        commands = calls()
    assert (checks["controller"].status, checks["controller"].found) == (
        "failed",
        "Slurmctld(primary) at login01 is DOWN",
    )
    assert checks["account"].status == "ok"
    assert not {"partition", "nodes", "trial", "pyxis", "pmix"} & set(checks)
    assert {"enroot", "disk", "registry"} <= set(checks)
    # Every other command that asks the controller would also wait for 10 s. sacctmgr and sacct ask the database.
    assert [call for call in commands if not call.startswith("sacct")] == ["sinfo --version", "scontrol ping"]


def test_a_controller_that_is_down(rig: Rig, look: Look) -> None:
    with rig.controller_down():
        assert look()["controller"].status == "failed"


def test_an_account_that_cannot_be_checked_is_a_warning(rig: Rig, look: Look) -> None:
    with rig.database_down():
        checks = look(qos="normal")
    assert (checks["account"].status, checks["qos"].status) == ("warning", "warning")
    assert "Connection refused" in checks["account"].found


def test_a_cluster_without_accounting_passes_the_account_check(
    rig_without_accounting: Rig, job: Plan, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    profile = rig_without_accounting.profile()
    session = SlurmCluster(profile)
    checks = by_id(run_preflight(session, cluster_checks(Needs(profile, job, sources=sources(servers)))))
    session.close()
    assert (checks["account"].status, checks["account"].found) == ("ok", "this cluster has no accounting")
    assert checks["trial"].status == "ok"


@contextmanager
def _hidden(rig: Rig, pattern: str) -> Iterator[None]:
    """Make the files of a pattern empty and not executable on the cluster."""
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
        check = look()["pmix"]
    assert (check.status, "libpmix2" in check.fix) == ("failed", True), check
    assert "PMIx library" in check.found


def test_a_slurm_without_pyxis(rig: Rig, look: Look) -> None:
    plugstack = rig.directory / "etc" / "slurm" / "plugstack.conf"
    before = plugstack.read_text()
    try:
        plugstack.write_text("# nothing\n")
        check = look()["pyxis"]
    finally:
        plugstack.write_text(before)
    assert (check.status, check.found) == ("failed", "srun does not have --container-image")


def test_a_pyxis_that_was_built_for_another_slurm(rig: Rig, look: Look, tmp_path: Path) -> None:
    source, plugin = tmp_path / "spank_pyxis.c", rig.directory / "knobs" / "lib" / "spank_pyxis.so"
    number = "#undef SLURM_VERSION_NUMBER\n#define SLURM_VERSION_NUMBER 0x150808\n"
    source.write_text(f"#include <slurm/spank.h>\n{number}SPANK_PLUGIN(pyxis, 1);\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(plugin), str(source)], check=True)
    plugstack = rig.directory / "etc" / "slurm" / "plugstack.conf"
    before = plugstack.read_text()
    try:
        plugstack.write_text(f"required {plugin}\n")
        checks = look()
    finally:
        plugstack.write_text(before)
    words = f"plugin_load_from_file: Incompatible Slurm plugin {plugin} version (21.08.8)"
    for name in ("pyxis", "pmix"):
        assert (checks[name].status, checks[name].found) == ("failed", words)
        assert "has to be built for Slurm 22.05.8" in checks[name].fix
    assert checks["trial"].status == "warning"
    assert "has to be built for Slurm 22.05.8" in checks["trial"].fix


def test_a_login_node_without_enroot_imports_in_a_job(rig: Rig, look: Look, unused_port: int) -> None:
    enroot = next(path for path in rig.directory.glob("bin/enroot"))
    aside = enroot.with_name("aside")
    enroot.rename(aside)
    try:
        checks = look(address=f"http://127.0.0.1:{unused_port}", cpu_partition="cpu")
    finally:
        aside.rename(enroot)
    assert (checks["enroot"].status, "in partition cpu" in checks["enroot"].fix) == ("warning", True)
    assert checks["registry"].status == "warning"
    assert "enroot-space" not in checks


def test_a_directory_of_another_user(rig: Rig, look: Look) -> None:
    folder = rig.new_dir()
    folder.chmod(0o555)
    check = look(install_dir=f"{folder}/deep/down")["install-dir"]
    assert (check.status, check.found) == ("failed", f"{folder} is not writable")


def test_a_full_disk(rig: Rig, look: Look) -> None:
    folder = rig.new_dir()
    with rig.full_disk(folder, megabytes=1):
        checks = look(install_dir=str(folder))
    assert (checks["disk"].status, checks["disk"].found) == ("failed", "1.05 MB")


def test_an_existing_image_needs_no_space(rig: Rig, look: Look, unused_port: int) -> None:
    folder = rig.new_dir()
    (folder / "images").mkdir()
    (folder / "images" / "nvidia+nemo+25.02.01.sqsh").write_bytes(b"hsqs")
    os.chmod(folder / "images", 0o755)
    checks = look(address=f"http://127.0.0.1:{unused_port}", install_dir=str(folder))
    assert (checks["disk"].needed, checks["registry"].status) == ("1 GB for runs", "ok")
    assert "enroot-space" not in checks


@pytest.mark.parametrize(
    ("status", "outcome"), [(200, "ok"), (401, "ok"), (403, "ok"), (407, "failed"), (500, "failed"), (503, "failed")]
)
def test_the_registry_check_reports_the_http_status_of_the_server(look: Look, status: int, outcome: str) -> None:
    with web_server(status) as address:
        check = look(address=address)["registry"]
    assert (check.status, f"HTTP {status}" in check.found) == (outcome, True)


def test_an_unreachable_server_fails_only_the_checks_that_need_it(look: Look, unused_port: int) -> None:
    address = f"http://127.0.0.1:{unused_port}"
    direct, upstream = look(address=address), look(address=address, name="upstream")
    assert [direct[name].status for name in ("registry", "git", "hub")] == ["failed", "ok", "ok"]
    assert [upstream[name].status for name in ("registry", "git", "hub")] == ["failed", "failed", "ok"]
    assert direct["registry"].found.startswith("Failed to connect")
    assert look(address=address, cpu_partition="cpu")["registry"].status == "failed"


def test_git_uses_the_users_settings_and_never_prompts(rig: Rig, look: Look, servers: str) -> None:
    """A mirror that only git's settings contain is used; git does not wait for a server that asks for a user name."""
    mirror = rig.new_dir()
    identity = "-c user.name=me -c user.email=me@here"
    rig.as_operator(
        f"git init -q {mirror}/dgxc-benchmarking.git && git -C {mirror}/dgxc-benchmarking.git {identity} "
        "commit -q --allow-empty -m one",
        check=True,
    )
    settings = rig.home / ".gitconfig"
    instead = '[url "{}/"]\n\tinsteadOf = https://github.com/NVIDIA/\n'
    try:
        settings.write_text(instead.format(mirror))
        check = look(name="upstream")["git"]
        settings.write_text(instead.format(servers))
        private = look(name="upstream")["git"]
    finally:
        settings.unlink()
    assert (check.status, check.found) == ("ok", "reached (git ls-remote)")
    assert check.needed == "https://github.com/NVIDIA/dgxc-benchmarking.git, for the recipe's repository"
    assert (private.status, "terminal prompts disabled" in private.found) == ("failed", True), private


def test_wget_is_used_without_curl(rig: Rig, look: Look) -> None:
    if rig.as_operator("command -v wget").returncode:
        pytest.fail("the rig's machine has no wget")
    with _hidden(rig, "/usr/bin/curl"):
        assert look()["registry"].found == "reached (HTTP 401)"


def test_python_is_used_without_curl_and_wget(rig: Rig, look: Look) -> None:
    with _hidden(rig, "/usr/bin/curl"), _hidden(rig, "/usr/bin/[w]get"):
        assert look()["registry"].found == "reached (HTTP 401)"


def test_nvidias_scripts_need_a_python(rig: Rig, look: Look) -> None:
    check = look(name="upstream")["python"]
    assert (check.status, "python3" in check.found) == ("ok", True)
    with _hidden(rig, "$(readlink -f /usr/bin/python3)"):
        check = look(name="upstream")["python"]
    assert (check.status, "uv" in check.fix) == ("failed", True)
