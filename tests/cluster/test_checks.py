from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.checks import Facts, evaluate
from llmb_tui.cluster.preflight_report import Check
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.plan.plan import Plan
from llmb_tui.text import clean_line
from tests.cluster.examples import PLAN, PROFILE

PARTITION = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   MaxNodes=UNLIMITED MaxTime=04:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   State=UP TotalCPUs=448 TotalNodes=4 SelectTypeParameters=NONE
"""
DF = "Filesystem     1024-blocks      Used Available Capacity Mounted on\nlustre 9 8 {} 25% /lustre/a b\n"
GOOD = Facts(
    version=Answer(0, "slurm 23.11.4\n"),
    ping=Answer(0, "Slurmctld(primary) at ctl is UP\n"),
    partition=Answer(0, PARTITION),
    nodes=Answer(0, "batch|batch*|up|4:00:00|6|mixed|gpu:h100:8\nbatch|batch*|up|4:00:00|4|idle|gpu:h100:8\n"),
    accounts=Answer(0, "llmbench\nother\n"),
    srun=Answer(0, "Usage: srun ...\n      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n"),
    enroot=Answer(0, "3.5.0\n"),
    disk=Answer(0, "/lustre/llmb\nwritable\n" + DF.format(10**9)),
)


def checks(facts: Facts, profile: ClusterProfile = PROFILE, plan: Plan | None = PLAN) -> dict[str, Check]:
    return {check.id: check for check in evaluate(facts, profile, plan).checks}


def nodes(*rows: str) -> Answer:
    return Answer(0, "".join(f"batch|batch*|up|4:00:00|{row}\n" for row in rows))


def test_a_good_cluster_passes_without_a_word_of_advice() -> None:
    report = evaluate(GOOD, PROFILE, PLAN)
    assert report.passed
    assert [(check.id, check.status, check.mend) for check in report.checks] == [
        (name, "ok", "")
        for name in (
            "scheduler controller account partition time-limit nodes gpus gpu-request pyxis enroot install-dir disk"
        ).split()
    ]
    assert checks(GOOD)["nodes"].found == "10 working of 10"


def test_without_a_plan_the_cluster_is_judged_on_its_own() -> None:
    report = evaluate(GOOD, PROFILE, None)
    assert report.passed
    assert not {"time-limit", "gpus"} & {check.id for check in report.checks}


@pytest.mark.parametrize(
    ("changes", "check", "status", "words"),
    [
        ({"version": Answer(127, "sh: 1: sinfo: not found\n")}, "scheduler", "failed", "non-interactive"),
        ({"version": Answer(0, "slurm 19.05.2\n")}, "scheduler", "warning", "may work"),
        ({"ping": Answer(1, "Slurmctld(primary) at ctl is DOWN\n")}, "controller", "failed", "running jobs go on"),
        ({"accounts": Answer(0, "a\nb\n")}, "account", "failed", "a, b"),
        ({"accounts": Answer(1, "sacctmgr: error: Connection refused\n")}, "account", "warning", "cannot be checked"),
        ({"accounts": Answer(0, "")}, "account", "warning", "cannot be checked"),
        ({"partition": Answer(1, "Partition nope not found\n")}, "partition", "failed", "those that were found"),
        (
            {"partition": Answer(0, PARTITION.replace("State=UP", "State=DOWN"))},
            "partition",
            "failed",
            "another partition",
        ),
        (
            {"partition": Answer(0, PARTITION.replace("Accounts=ALL", "Accounts=x,y"))},
            "partition",
            "failed",
            "go together",
        ),
        (
            {"partition": Answer(0, PARTITION.replace("Accounts=ALL", "Accounts=ALL DenyAccounts=llmbench"))},
            "partition",
            "failed",
            "go together",
        ),
        (
            {"partition": Answer(0, PARTITION.replace("04:00:00", "00:10:00"))},
            "time-limit",
            "failed",
            "Lower the time limit",
        ),
        ({"partition": Answer(0, PARTITION.replace("Nodes=UNLIMITED", "Nodes=2"))}, "nodes", "failed", "fewer GPUs"),
        ({"nodes": nodes("4|idle|gpu:h100:8")}, "nodes", "failed", "larger partition"),
        ({"nodes": nodes("4|idle|gpu:h100:8", "9|down*|gpu:h100:8")}, "nodes", "warning", "wait"),
        ({"nodes": nodes("8|idle|gpu:a100:8")}, "gpus", "failed", "GPU type that the cluster has"),
        ({"nodes": nodes("8|idle|gpu:h100:4")}, "gpus", "failed", "another partition"),
        ({"nodes": nodes("8|idle|gpu:8")}, "gpus", "warning", "Slurm does not say"),
        ({"nodes": nodes("8|idle|(null)")}, "gpus", "warning", "Slurm does not say"),
        ({"nodes": nodes("8|idle|(null)")}, "gpu-request", "failed", "GPU request to none"),
        ({"srun": Answer(0, "Usage: srun\n --container=path\n")}, "pyxis", "failed", "Pyxis"),
        ({"enroot": Answer(127, "sh: enroot: not found\n")}, "enroot", "warning", "in a job"),
        ({"disk": Answer(0, "/lustre\nread-only\n" + DF.format(10**9))}, "install-dir", "failed", "write"),
        ({"disk": Answer(0, "/lustre/llmb\nwritable\n" + DF.format(2_000_000))}, "disk", "failed", "Free some space"),
        ({"disk": Answer(0, "/lustre/llmb\nwritable\n" + DF.format(30_000_000))}, "disk", "warning", "not be enough"),
        ({"disk": Answer(1, "/lustre/llmb\nwritable\ndf: hung\n")}, "disk", "warning", "look for yourself"),
        ({"disk": Answer(-1, "")}, "install-dir", "failed", "Check the path"),
    ],
)
def test_each_fault_is_found_and_says_how_to_mend_it(
    changes: dict[str, Answer], check: str, status: str, words: str
) -> None:
    report = evaluate(replace(GOOD, **changes), PROFILE, PLAN)
    found = {c.id: c for c in report.checks}[check]
    assert found.status == status
    assert words in found.mend
    assert report.passed == all(c.status != "failed" for c in report.checks)


def test_without_slurm_only_the_disk_is_judged() -> None:
    found = checks(replace(GOOD, version=Answer(127, "sh: sinfo: not found\n")))
    assert list(found) == ["scheduler", "install-dir", "disk"]


def test_a_silent_controller_leaves_out_what_only_it_knows() -> None:
    silent = replace(GOOD, ping=Answer(1, "DOWN"), partition=Answer(1, ""), nodes=Answer(1, ""))
    assert list(checks(silent)) == ["scheduler", "controller", "account", "pyxis", "enroot", "install-dir", "disk"]


def test_accounting_that_is_off_needs_no_account() -> None:
    off = Answer(1, "You are not running a supported accounting_storage plugin\n")
    assert checks(replace(GOOD, accounts=off))["account"].status == "ok"


def test_no_gpu_request_where_slurm_counts_gpus_is_a_warning() -> None:
    assert checks(GOOD, replace(PROFILE, gpu_request="none"))["gpu-request"].status == "warning"


def test_no_gpu_request_where_slurm_counts_none_is_right() -> None:
    facts = replace(GOOD, nodes=nodes("8|idle|(null)"))
    assert checks(facts, replace(PROFILE, gpu_request="none"))["gpu-request"].status == "ok"


@pytest.mark.parametrize(
    ("site", "wanted", "status"),
    [
        ("h100", "h100", "ok"),
        ("H100_SXM", "h100", "ok"),
        ("nvidia_h100_80gb_hbm3", "h100", "ok"),
        ("nvidia_gb200", "gb200", "ok"),
        ("gb200", "b200", "failed"),
        ("b200", "gb200", "failed"),
        ("nvidia_b200", "b200", "ok"),
    ],
)
def test_sites_name_gpu_types_in_their_own_way(site: str, wanted: str, status: str) -> None:
    plan = replace(PLAN, selection=replace(PLAN.selection, gpu=wanted))
    assert checks(replace(GOOD, nodes=nodes(f"8|idle|gpu:{site}:8(S:0-1)")), plan=plan)["gpus"].status == status


def test_only_nodes_with_the_right_gpus_count() -> None:
    mixed = replace(GOOD, nodes=nodes("7|idle|gpu:h100:8", "90|idle|gpu:a100:8"))
    found = checks(mixed)
    assert found["nodes"].status == "failed"
    assert found["nodes"].found == "7 working of 7"
    assert found["gpus"].status == "ok"


def test_an_install_directory_that_is_to_be_made() -> None:
    found = checks(replace(GOOD, disk=Answer(0, "/lustre\nwritable\n" + DF.format(10**9))))["install-dir"]
    assert (found.status, found.found) == ("ok", "to be made in /lustre")


answers = st.builds(
    Answer, st.integers(-1, 200), st.text() | st.text("|=:,gpu h100\n/\x1b[31m0123456789KUPn-", max_size=90)
)


@given(st.builds(Facts, *[answers] * 8), st.sampled_from([None, PLAN]))
def test_whatever_a_cluster_says_the_report_is_clean_text(facts: Facts, plan: Plan | None) -> None:
    for check in evaluate(facts, PROFILE, plan).checks:
        for text in (check.found, check.needed, check.mend):
            assert text == clean_line(text)
        assert check.found
        assert check.needed
        assert (check.mend == "") == (check.status == "ok")
