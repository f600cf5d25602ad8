"""The scheduler's checks, from the output of Slurm's commands."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.batch import TIMED_OUT, Answer
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.text import clean_line
from llmb_tui.plan.plan import Plan
from llmb_tui.preflight.check_group import Answers, clean_check
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.preflight.scheduler import slurm_checks, slurm_group
from tests.cluster.examples import PLAN, PROFILE
from tests.cluster.facts import CONFIG, PARTITION_20_11, PARTITION_22_05, PARTITION_25_05, SLURM

PARTITION = PARTITION_22_05


def checks(
    changes: dict[str, Answer] | None = None, profile: SlurmProfile = PROFILE, plan: Plan | None = PLAN
) -> dict[str, Check]:
    found = [clean_check(check) for check in slurm_checks({**SLURM, **(changes or {})}, Needs(profile, plan))]
    return {check.id: check for check in found}


def nodes(*rows: str) -> dict[str, Answer]:
    return {"nodes": Answer(0, "".join(f"batch|batch*|up|4:00:00|{row}\n" for row in rows))}


def with_gpu(gpu: str, gpus_per_node: int = 8) -> Plan:
    return replace(PLAN, selection=replace(PLAN.selection, gpu=gpu), gpus_per_node=gpus_per_node)


def test_a_good_cluster_passes_without_a_word_of_advice() -> None:
    names = "scheduler controller account partition time-limit nodes gpus gpu-request cpu trial pyxis pmix"
    assert [(c.id, c.status, c.fix) for c in checks().values()] == [(name, "ok", "") for name in names.split()]
    assert checks()["nodes"].found == "10 working of 10"
    assert checks()["pyxis"].found == "srun has --container-image; runtime_path=/run/pyxis"
    assert checks()["trial"].found == "could start at 2026-11-21 11:37:03"


@pytest.mark.parametrize("text", [PARTITION_20_11, PARTITION_22_05, PARTITION_25_05])
def test_partitions_of_several_versions_of_slurm(text: str) -> None:
    by_id = checks({"partition": Answer(0, text)})
    assert {check.status for check in by_id.values()} == {"ok"}
    assert by_id["time-limit"].found == "at most 04:00:00"


def test_without_a_plan_only_the_cluster_is_checked() -> None:
    by_id = checks(plan=None)
    assert Preflight(tuple(by_id.values())).passed
    assert not {"time-limit", "gpus", "cpu", "trial"} & set(by_id)


OTHER_SLURM = """\
srun: error: spank: /etc/slurm/plugstack.conf.d/pyxis.conf:1: Failed to load plugin /usr/lib/slurm/spank_pyxis.so: \
Incompatible Slurm plugin version (21.08.8)
srun: error: Failed to initialize plugin stack
"""
"""Words of srun after NVIDIA/pyxis#95."""
OTHER_SLURM_22_05 = """\
srun: error: plugin_load_from_file: Incompatible Slurm plugin /usr/lib/slurm/spank_pyxis.so version (21.08.8)
srun: error: spank: /usr/lib/slurm/spank_pyxis.so: Incompatible plugin version
srun: error: spank: /etc/slurm/plugstack.conf:1: Failed to load plugin /usr/lib/slurm/spank_pyxis.so. Aborting.
srun: error: Failed to initialize plugin stack
"""
OLD_PYXIS = """\
  --container-image=X
  --container-mounts=X
  --container-workdir=PATH
  --no-container-mount-home
"""
"""Options of Pyxis after NVIDIA/pyxis#65."""
FAULTS: list[tuple[dict[str, Answer], str, str, str]] = [
    ({"version": Answer(127, "sh: 1: sinfo: not found\n")}, "scheduler", "failed", "non-interactive"),
    ({"version": Answer(-1, "")}, "scheduler", "failed", "may hang"),
    ({"version": Answer(0, "slurm 19.05.2\n")}, "scheduler", "warning", "may still work"),
    ({"ping": Answer(1, "Slurmctld(primary) at ctl is DOWN\n")}, "controller", "failed", "Running jobs continue"),
    ({"ping": Answer(124, "")}, "controller", "failed", "Running jobs continue"),
    ({"associations": Answer(0, "eos|a|||\neos|b|||\n")}, "account", "failed", "a, b"),
    ({"associations": Answer(1, "sacctmgr: error: Connection refused\n")}, "account", "warning", "cannot be checked"),
    ({"associations": Answer(0, "")}, "account", "warning", "cannot be checked"),
    ({"associations": Answer(0, "other|llmbench|||\neos|x|||\n")}, "account", "failed", "one of: x."),
    ({"associations": Answer(0, "eos|llmbench|long||\n")}, "account", "failed", "another account"),
    ({"partition": Answer(1, "Partition nope not found\n")}, "partition", "failed", "one of these"),
    (
        {"partition": Answer(0, PARTITION.replace("State=UP", "State=DOWN"))},
        "partition",
        "failed",
        "another partition",
    ),
    (
        {"partition": Answer(0, PARTITION.replace("Accounts=ALL", "Accounts=x,y"))},
        "partition",
        "warning",
        "accounts below an allowed one",
    ),
    (
        {"partition": Answer(0, PARTITION.replace("Accounts=ALL", "Accounts=ALL DenyAccounts=llmbench"))},
        "partition",
        "failed",
        "another account",
    ),
    (
        {"partition": Answer(0, PARTITION.replace("Groups=ALL", "Groups=admins"))},
        "partition",
        "failed",
        "membership",
    ),
    (
        {"partition": Answer(0, PARTITION.replace("04:00:00", "00:10:00"))},
        "time-limit",
        "failed",
        "Lower the time limit",
    ),
    ({"partition": Answer(0, PARTITION.replace("Nodes=UNLIMITED", "Nodes=2"))}, "nodes", "failed", "fewer GPUs"),
    (nodes("4|idle|gpu:h100:8"), "nodes", "failed", "larger partition"),
    (nodes("4|idle|gpu:h100:8", "9|down*|gpu:h100:8"), "nodes", "warning", "wait"),
    (nodes("8|idle|gpu:a100:8"), "gpus", "failed", "GPU type that the cluster has"),
    (nodes("8|idle|gpu:h100:4"), "gpus", "failed", "another partition"),
    (nodes("8|idle|gpu:8"), "gpus", "warning", "Slurm does not report"),
    (nodes("8|idle|(null)"), "gpus", "warning", "Slurm does not report"),
    (nodes("8|idle|(null)"), "gpu-request", "failed", "GPU request to none"),
    ({"config": Answer(0, CONFIG.replace("cons_tres", "linear"))}, "gpu-request", "failed", "GPU request to gres"),
    ({"architectures": Answer(0, "10|aarch64|batch\n")}, "cpu", "failed", "GPU type that these nodes have"),
    ({"architectures": Answer(0, ""), "machine": Answer(0, "aarch64\n")}, "cpu", "warning", "check the nodes"),
    ({"trial": Answer(1, "allocation failure: Invalid qos specification\n")}, "trial", "failed", "with this message"),
    ({"trial": Answer(1, "allocation failure: Job is held by weather\n")}, "trial", "warning", "with this message"),
    ({"srun": Answer(0, "Usage: srun\n --container=path\n")}, "pyxis", "failed", "Slurm plugin Pyxis"),
    ({"srun": Answer(0, "  --container-image=I --container-mounts=M\n")}, "pyxis", "failed", "too old"),
    ({"srun": Answer(0, OLD_PYXIS)}, "pyxis", "failed", "too old"),
    ({"mpi": Answer(0, "MPI plugin types are...\n\tnone\n\tpmi2\n")}, "pmix", "failed", "no PMIx plugin"),
    ({"srun": Answer(1, OTHER_SLURM)}, "pyxis", "failed", "has to be built for Slurm 23.11.4"),
    ({"srun": Answer(1, OTHER_SLURM_22_05)}, "pyxis", "failed", "has to be built for Slurm 23.11.4"),
    ({"srun": Answer(1, "srun: error: Failed to initialize plugin stack\n")}, "pyxis", "failed", "`srun` fails"),
    ({"mpi": Answer(1, OTHER_SLURM)}, "pmix", "failed", "has to be built for Slurm 23.11.4"),
    ({"mpi": Answer(1, "srun: fatal: no\n")}, "pmix", "failed", "`srun --mpi=list` fails"),
    ({"pmix": Answer(1, OTHER_SLURM_22_05)}, "pmix", "failed", "has to be built for Slurm 23.11.4"),
    ({"trial": Answer(1, OTHER_SLURM)}, "trial", "warning", "has to be built for Slurm 23.11.4"),
    (
        {"pmix": Answer(1, "srun: error: mpi/pmix_v4: init: pmi/pmix: can not load PMIx library\n")},
        "pmix",
        "failed",
        "libpmix2",
    ),
]


def test_a_pyxis_built_for_another_slurm_is_quoted_by_both_checks() -> None:
    """The mpi list fails with the same words, because every start of srun loads the plugins."""
    found = checks({name: Answer(1, OTHER_SLURM) for name in ("srun", "mpi", "pmix")})
    assert found["pyxis"].found == found["pmix"].found
    assert "spank_pyxis.so: Incompatible Slurm plugin version (21.08.8)" in found["pyxis"].found


@pytest.mark.parametrize(("changes", "check", "status", "words"), FAULTS)
def test_each_fault_is_found_with_its_remedy(changes: dict[str, Answer], check: str, status: str, words: str) -> None:
    found = checks(changes)[check]
    assert found.status == status
    assert words in found.fix


@pytest.mark.parametrize(
    ("changes", "name", "wrong"),
    [
        ({"partition": Answer(1, "Partition nope not found\n")}, "partition", True),
        ({"partition": Answer(0, PARTITION.replace("Groups=ALL", "Groups=admins"))}, "partition", True),
        ({"partition": Answer(0, PARTITION.replace("State=UP", "State=DOWN"))}, "partition", False),
        ({"partition": Answer(0, PARTITION.replace("State=UP", "State=DRAIN"))}, "partition", False),
        ({"partition": Answer(TIMED_OUT, "")}, "partition", False),
        ({"partition": Answer(1, "Unable to contact\n"), "nodes": Answer(1, "")}, "partition", False),
        ({"ping": Answer(1, "Slurmctld(primary) at ctl is DOWN\n")}, "controller", False),
    ],
)
def test_a_closed_partition_is_not_a_wrong_request(changes: dict[str, Answer], name: str, wrong: bool) -> None:
    check = checks(changes)[name]
    assert (check.status, check.wrong_request) == ("failed", wrong)
    assert Preflight((check,)).exit_code == (1 if wrong else 2)


@pytest.mark.parametrize(
    "text",
    [
        "srun: MPI types are...\nsrun: pmix\nsrun: pmi2\nsrun: none\n",  # 20.11, on stderr
        "MPI plugin types are...\n\tcray_shasta\n\tpmix\nspecific pmix plugin versions available: pmix_v3\n",
    ],
)
def test_pmix_is_found_in_the_lists_of_several_versions(text: str) -> None:
    assert checks({"mpi": Answer(0, text)})["pmix"].status == "ok"


def test_without_slurm_nothing_else_of_it_is_judged() -> None:
    assert list(checks({"version": Answer(127, "sh: sinfo: not found\n")})) == ["scheduler"]


def test_a_silent_controller_leaves_out_its_checks() -> None:
    silent = {
        name: Answer(1, "") for name in ("ping", "config", "partition", "nodes", "architectures", "trial", "pmix")
    }
    assert list(checks(silent)) == ["scheduler", "controller", "account"]


@pytest.mark.parametrize("dead", ["primary", "backup"])
def test_one_of_two_controllers_is_enough(dead: str) -> None:
    states = {mode: "DOWN" if mode == dead else "UP" for mode in ("primary", "backup")}
    text = "".join(f"Slurmctld({mode}) at {mode}01 is {state}\n" for mode, state in states.items())
    assert checks({"ping": Answer(0, text)})["controller"].status == "ok"


def test_accounting_that_is_off_needs_no_account() -> None:
    off = Answer(1, "You are not running a supported accounting_storage plugin\n")
    assert checks({"associations": off})["account"].status == "ok"


def test_an_account_that_slurm_does_not_enforce_is_a_warning() -> None:
    lax = {"associations": Answer(0, "eos|a|||\n"), "config": Answer(0, "AccountingStorageEnforce = none\n")}
    assert checks(lax)["account"].status == "warning"


def test_no_gpu_request_is_a_warning_if_slurm_counts_gpus() -> None:
    check = checks(profile=replace(PROFILE, gpu_request="none"))["gpu-request"]
    assert (check.status, "gpus-per-node" in check.fix) == ("warning", True)


def test_no_gpu_request_is_right_if_slurm_counts_none() -> None:
    by_id = checks(nodes("8|idle|(null)"), replace(PROFILE, gpu_request="none"))
    assert by_id["gpu-request"].status == "ok"


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
        ("gb300", "gb300", "ok"),
        ("dgxh100", "h100", "ok"),
        ("dgxgb200", "gb200", "ok"),
        ("dgxgb200", "b200", "failed"),
        ("dgxh100", "h200", "failed"),
        ("nvidia_a100-sxm4-80gb", "h100", "failed"),
        ("gh200", "h200", "failed"),
        ("nvidia_rtx_pro_6000", "h100", "failed"),
        ("a6000", "h100", "failed"),
        ("mi300x", "h100", "failed"),
        ("nvidia_l40s", "h100", "failed"),
        ("1g.10gb", "h100", "failed"),
        *((name, "h100", "warning") for name in ("hopper", "hgx", "sxm5", "nvidia", "80gb_hbm3", "nvl72")),
    ],
)
def test_gpu_types_are_recognised_under_site_specific_names(site: str, wanted: str, status: str) -> None:
    by_id = checks(nodes(f"8|idle|gpu:{site}:8(S:0-1)"), plan=with_gpu(wanted))
    assert by_id["gpus"].status == status
    assert (by_id["nodes"].status == "failed") == (status == "failed")


def test_only_nodes_with_the_right_gpus_count() -> None:
    by_id = checks(nodes("7|idle|gpu:h100:8", "90|idle|gpu:gb200:4"))
    assert (by_id["nodes"].status, by_id["nodes"].found) == ("failed", "7 working of 7")
    assert by_id["gpus"].status == "ok"


def test_a_partition_with_two_gpu_types_suggests_a_constraint() -> None:
    mixed = nodes("9|idle|gpu:h100:8|hbm3,ib", "90|idle|gpu:a100:8|hbm2,ib")
    check = checks(mixed)["gpus"]
    assert (check.status, check.fix) == (
        "warning",
        "The job could get other GPUs than H100: set the cluster's constraint to hbm3.",
    )
    assert checks(mixed, replace(PROFILE, constraint="hbm3"))["gpus"].status == "ok"


def batch(gres: str) -> dict[str, Answer]:
    return {"nodes": Answer(0, f"batch|batch*|up|4:00:00|8|idle|{gres}|mig\n")}


WHOLE, MIG = "nvidia_h100_80gb_hbm3", "nvidia_h100_80gb_hbm3_1g.10gb"


@pytest.mark.parametrize(
    "gres",
    [
        f"gpu:{MIG}:56(S:0-1)",
        f"gpu:{WHOLE}:2(S:0-1),gpu:{WHOLE}_4g.40gb:8(S:0-1)",
        *(f"gpu:{name}:56" for name in ("1g.10gb", "h100_1g.10gb", "h100-1g.10gb", "mig-1g.10gb", "a100_3g.20gb")),
    ],
)
def test_mig_slices_are_no_gpus(gres: str) -> None:
    by_id = checks(batch(gres))
    assert (by_id["gpus"].status, by_id["nodes"].status) == ("failed", "failed")
    assert "(MIG slices)" in by_id["gpus"].found
    assert "A MIG slice is not a whole H100." in by_id["gpus"].fix
    assert "fewer" not in by_id["nodes"].fix
    assert by_id["gpu-request"].status == "ok"


def test_other_partitions_are_suggested_if_the_partition_has_only_slices() -> None:
    both = f"batch|batch*|up|4:00:00|4|idle|gpu:{MIG}:56|\nwhole|whole|up|4:00:00|9|idle|gpu:h100:8|\n"
    assert "such as whole." in checks({"nodes": Answer(0, both)})["gpus"].fix


def test_a_request_by_number_may_get_slices_of_the_same_node() -> None:
    mixed = batch("gpu:h100:4,gpu:h100_1g.10gb:28")
    check = checks(mixed, plan=replace(with_gpu("h100", 4), nodes=8))["gpus"]
    assert (check.status, check.found) == ("warning", "4 × h100, 28 × h100_1g.10gb (MIG slices)")
    assert check.fix == (
        "The job could get other GPUs than H100: set the cluster's GPU type to h100, or choose a partition whose nodes "
        "have only whole GPUs of this type."
    )
    same = checks(mixed, replace(PROFILE, constraint="mig"), with_gpu("h100", 4))["gpus"]
    assert same.status == "warning", "the constraint selects just these nodes"


def test_gpus_that_slurm_lists_by_socket_are_added_up() -> None:
    assert checks(batch("gpu:h100:4(S:0),gpu:h100:4(S:1)"))["gpus"].status == "ok"


ELSEWHERE = "batch|batch*|up|4:00:00|9|idle|(null)|\nfast|fast|up|4:00:00|9|idle|gpu:h100:8|\n"


@pytest.mark.parametrize("gpu_request", ["none", "gres", "gpus-per-node"])
@pytest.mark.parametrize("plan", [PLAN, None])
def test_a_partition_without_gpus_fails_if_others_have_some(gpu_request: Any, plan: Plan | None) -> None:
    by_id = checks({"nodes": Answer(0, ELSEWHERE)}, replace(PROFILE, gpu_request=gpu_request), plan)
    assert (by_id["gpus"].status, by_id["gpus"].found) == ("failed", "no GPUs in batch; fast has 8 × h100")
    assert by_id["gpus"].fix == "Choose a partition with these GPUs, such as fast."
    assert by_id["gpus"].wrong_request
    if plan is not None:
        assert (by_id["nodes"].status, by_id["nodes"].found) == ("failed", "none with these GPUs")
    assert by_id["gpu-request"].status == ("warning" if gpu_request == "none" else "ok")
    assert not any("to none" in check.fix for check in by_id.values())


def test_a_partition_without_gpus_if_others_have_the_wrong_ones() -> None:
    wrong = {"nodes": Answer(0, ELSEWHERE.replace("h100", "a100"))}
    assert checks(wrong)["gpus"].fix == "Choose the GPU type that the cluster has, or another partition."


def two_partitions(text: str) -> dict[str, Answer]:
    return {
        "partition": Answer(0, PARTITION + "\n" + PARTITION.replace("=batch", "=fast")),
        "nodes": Answer(0, text),
    }


def test_one_of_several_partitions_has_no_gpus() -> None:
    profile = replace(PROFILE, partition="batch,fast")
    by_id = checks(two_partitions(ELSEWHERE), profile)
    assert (by_id["gpus"].status, by_id["gpus"].found) == ("warning", "8 × h100; none in batch")
    assert by_id["gpus"].fix == (
        "A job that requests GPUs does not start in batch: remove it from the cluster's partition."
    )
    assert by_id["nodes"].status == "ok"
    by_id = checks(two_partitions(ELSEWHERE), replace(profile, gpu_request="none"))
    assert by_id["gpus"].status == "failed"
    assert "remove batch from the cluster's partition" in by_id["gpus"].fix


def test_nodes_without_gpus_are_not_counted_among_those_with_some() -> None:
    by_id = checks(nodes("8|idle|gpu:h100:8", "90|idle|(null)"))
    assert (by_id["gpus"].status, by_id["nodes"].found) == ("ok", "8 working of 8")
    by_id = checks(nodes("7|idle|gpu:h100:8", "90|idle|(null)"))
    assert (by_id["nodes"].status, by_id["nodes"].found) == ("failed", "7 working of 7")


@pytest.mark.parametrize(
    ("site", "wanted", "status"),
    [
        *((name, "h100", "warning") for name in ("h100_pcie", "nvidia_h100_pcie", "nvidia_h100_nvl", "h100-nvl")),
        ("nvidia_h200_nvl", "h200", "warning"),
        ("h100", "h100", "ok"),
        ("h100_sxm5", "h100", "ok"),
        ("nvidia_h200", "h200", "ok"),
        ("gb200_nvl72", "gb200", "ok"),
    ],
)
def test_cards_are_distinguished_from_the_modules_of_the_published_step_times(
    site: str, wanted: str, status: str
) -> None:
    check = checks(nodes(f"8|idle|gpu:{site}:8(S:0-1)"), plan=with_gpu(wanted))["gpus"]
    assert check.status == status
    if status == "warning":
        assert f"published step times were measured on {wanted.upper()} SXM, and {site} is slower" in check.fix
        assert "verdict of a run on it will be WARN" in check.fix


def test_a_constraint_selects_sxm_modules_or_pcie_cards() -> None:
    both = nodes("8|idle|gpu:h100:8|hgx", "8|idle|gpu:h100_pcie:8|card")
    assert checks(both)["gpus"].fix.endswith("To get only SXM, set the cluster's constraint to hgx.")
    assert checks(both, replace(PROFILE, constraint="hgx"))["gpus"].status == "ok"
    assert "SXM" in checks(both, replace(PROFILE, constraint="card"))["gpus"].fix


@pytest.mark.parametrize(
    ("text", "status", "working"),
    [
        # Nodes of a cloud: powered down, powering down, and starting.
        (
            "batch|batch*|up|infinite|30|idle~|gpu:h100:8|dynamic,p5\n"
            "batch|batch*|up|infinite|2|down~|gpu:h100:8|dynamic,p5\n"
            "batch|batch*|up|infinite|1|allocated#|gpu:h100:8|static,p5\n",
            "ok",
            "31 working of 33",
        ),
        ("batch|batch*|up|4:00:00|8|idle|gpu:8(S:0-3)|x\n", "warning", "8 working of 8"),
        ("batch|batch*|up|4:00:00|8|idle|gpu:nvidia_h100:8,shard:nvidia_h100:32|x\n", "ok", "8 working of 8"),
    ],
)
def test_lines_of_real_sites(text: str, status: str, working: str) -> None:
    by_id = checks({"nodes": Answer(0, text)})
    assert (by_id["gpus"].status, by_id["nodes"].found) == (status, working)


def test_other_resources_of_a_node_are_no_gpus() -> None:
    by_id = checks(batch("craynetwork:4,gpu:a100:4"), plan=with_gpu("a100", 4))
    assert (by_id["gpus"].status, by_id["gpus"].found) == ("ok", "4 × a100")


def test_grace_nodes_need_another_image() -> None:
    four = with_gpu("gb200", 4)
    on_arm = nodes("8|idle|gpu:gb200:4") | {"architectures": Answer(0, "8|aarch64|batch\n")}
    assert checks(on_arm, plan=four)["cpu"].status == "ok"
    assert checks(nodes("8|idle|gpu:gb200:4"), plan=four)["cpu"].status == "failed"


def test_a_job_that_only_has_to_wait_is_not_gated_by_the_trial() -> None:
    """While nodes are down, Slurm refuses a trial as if the job were impossible; it would queue the real job."""
    words = {"trial": Answer(1, "allocation failure: Requested node configuration is not available\n")}
    assert checks(words)["trial"].status == "failed"
    waiting = checks(nodes("4|idle|gpu:h100:8", "9|down*|gpu:h100:8") | words)
    assert (waiting["nodes"].status, waiting["trial"].status) == ("warning", "warning")


def test_a_test_submission_is_not_shown_after_a_failed_check_or_without_an_answer() -> None:
    assert "trial" not in checks(nodes("4|idle|gpu:h100:8"))
    assert "trial" not in checks({"trial": Answer(124, "")})


def test_of_several_partitions_only_those_that_fit_the_job_count() -> None:
    two = {
        "partition": Answer(0, PARTITION.replace("04:00:00", "00:10:00") + "\n" + PARTITION.replace("=batch", "=long")),
        "nodes": Answer(0, "batch|batch*|up|10:00|2|idle|gpu:h100:8|\nlong|long|up|4:00:00|9|idle|gpu:h100:8|\n"),
    }
    by_id = checks(two, replace(PROFILE, partition="batch,long"))
    assert (by_id["time-limit"].status, by_id["nodes"].found) == ("ok", "9 working of 9")


def test_a_large_partition_with_a_small_node_limit_does_not_hide_the_others() -> None:
    two = {
        "partition": Answer(
            0, PARTITION.replace("Nodes=UNLIMITED", "Nodes=2") + "\n" + PARTITION.replace("=batch", "=long")
        ),
        "nodes": Answer(0, "batch|batch*|up|4:00:00|100|idle|gpu:h100:8|\nlong|long|up|4:00:00|64|idle|gpu:h100:8|\n"),
    }
    profile = replace(PROFILE, partition="batch,long")
    check = checks(two, profile)["nodes"]
    assert (check.status, check.found) == ("ok", "64 working of 64")
    assert checks(two, profile, replace(PLAN, nodes=65))["nodes"].found == "at most 2 for one job"


RESERVATION = (
    "ReservationName=bench StartTime=2026-11-21T11:37:03 EndTime=2026-11-21T12:37:03 Duration=01:00:00 Nodes=cn[1-9] "
    "NodeCnt=9 CoreCnt=112 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=112 Users=me Groups=(null) "
    "Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null) \n"
)


def for_accounts(names: str) -> str:
    """The reservation, for these accounts only."""
    return RESERVATION.replace("Users=me", "Users=(null)").replace("Accounts=(null)", f"Accounts={names}")


FEATURES = nodes("9|idle|gpu:h100:8|hbm3,rack1")


@pytest.mark.parametrize(
    ("fields", "changes", "check", "status", "words"),
    [
        ({"reservation": "x"}, {}, "reservation", "failed", "no reservation"),
        ({"reservation": "x"}, {"reservations": Answer(0, RESERVATION)}, "reservation", "failed", "bench"),
        (
            {"reservation": "bench"},
            {"reservations": Answer(0, RESERVATION)},
            "reservation",
            "ok",
            "until 2026-11-21T12",
        ),
        (
            {"reservation": "bench"},
            {"reservations": Answer(0, RESERVATION.replace("Users=me", "Users=you"))},
            "reservation",
            "failed",
            "does not allow me or llmbench",
        ),
        (
            {"reservation": "bench"},
            {"reservations": Answer(0, RESERVATION.replace("Users=me", "Users=-me"))},
            "reservation",
            "failed",
            "does not allow me or llmbench",
        ),
        *(
            ({"reservation": "bench"}, {"reservations": Answer(0, for_accounts(names))}, "reservation", status, words)
            for names, status, words in (
                ("up", "warning", "bench allows up"),
                ("-guests", "ok", "until 2026"),
                ("-guests,-llmbench", "failed", "does not allow me or llmbench"),
            )
        ),
        (
            {"reservation": "bench"},
            {"reservations": Answer(0, RESERVATION.replace("Cnt=9", "Cnt=2"))},
            "reservation",
            "failed",
            "2 nodes",
        ),
        (
            {"reservation": "bench"},
            {"reservations": Answer(0, RESERVATION.replace("Cnt=9", "Cnt=2").replace("=SPEC", "=FLEX,SPEC"))},
            "reservation",
            "warning",
            "2 nodes",
        ),
        (
            {"reservation": "bench"},
            {"reservations": Answer(0, RESERVATION.replace("=ACTIVE", "=INACTIVE"))},
            "reservation",
            "warning",
            "from 2026",
        ),
        ({"constraint": "hbm3&rack1*2"}, FEATURES, "constraint", "ok", "nodes with"),
        (
            {"constraint": "hbm3&rack7"},
            FEATURES,
            "constraint",
            "failed",
            "no node has rack7; the nodes have hbm3, rack1",
        ),
        ({"constraint": "[80gb*2&8xh100]"}, nodes("9|idle|gpu:h100:8|80gb,8xh100"), "constraint", "ok", "nodes with"),
        ({"constraint": "hbm3"}, {}, "constraint", "failed", "no features"),
        ({"exclude": "cn[001-002]"}, {}, "exclude", "ok", "known"),
        ({"exclude": "cn9"}, {"exclude": Answer(0, "Node cn9 not found\n")}, "exclude", "failed", "cn9 not found"),
        ({"segment": 4}, {"version": Answer(0, "slurm 24.05.1\n")}, "segment", "ok", "Slurm 24.05.1"),
        ({"segment": 3}, {"version": Answer(0, "slurm 24.05.1\n")}, "segment", "warning", "8 nodes"),
        ({"segment": 4}, {}, "segment", "failed", "Slurm 23.11.4"),
        ({"qos": "normal"}, {}, "qos", "ok", "normal"),
        ({"qos": "gold"}, {}, "qos", "failed", "normal, short"),
        ({"qos": "short"}, {}, "qos", "failed", "short allows 8 GPUs; short allows 00:10:00"),
        ({"qos": "short"}, {"associations": Answer(1, "sacctmgr: error: refused")}, "qos", "failed", "short allows"),
        ({"qos": "normal"}, {"associations": Answer(1, "refused")}, "qos", "warning", "refused"),
        ({"qos": "normal"}, {"associations": Answer(0, "")}, "qos", "warning", "no QOS is listed"),
        ({"reservation": "b"}, {"reservations": Answer(124, "")}, "reservation", "warning", "no answer in time"),
        (
            {"qos": "normal"},
            {"partition": Answer(0, PARTITION.replace("Qos=ALL", "Qos=gold"))},
            "partition",
            "failed",
            "does not allow QOS normal",
        ),
        (
            {},
            {"partition": Answer(0, PARTITION.replace("QoS=N/A", "QoS=short"))},
            "qos",
            "failed",
            "short allows 8 GPUs",
        ),
    ],
)
def test_the_other_requests_of_a_profile(
    fields: dict[str, Any], changes: dict[str, Answer], check: str, status: str, words: str
) -> None:
    found = checks(changes, replace(PROFILE, **fields))[check]
    assert (found.status, words in found.found) == (status, True), found


def with_qos(own: str, of_partition: str, config: str = CONFIG) -> dict[str, Answer]:
    """The user's QOS and the partition's: flags, and `maxwall|maxtres|maxtrespu|grptres|mintres` of each.

    The last one may be missing.
    """
    rows = (
        f"{name}|{cells}{'|' * (5 - cells.count('|'))}\n" for name, cells in (("normal", own), ("big", of_partition))
    )
    return {
        "qos": Answer(0, "".join(rows)),
        "partition": Answer(0, PARTITION.replace("QoS=N/A", "QoS=big")),
        "config": Answer(0, config),
    }


def test_a_limit_of_the_partitions_qos_overrides_the_same_limit_of_the_jobs_qos() -> None:
    """Limits of one kind on one resource."""
    assert "qos" not in checks(with_qos("|00:10:00|node=4||", "|1-00:00:00|node=64||"))
    check = checks(with_qos("|00:10:00|node=4|gres/gpu=8|", "||node=64||"))["qos"]
    assert (check.status, check.found) == ("failed", "normal allows 8 GPUs; normal allows 00:10:00")
    assert checks(with_qos("||node=64||", "||node=4||"))["qos"].found == "big allows 4 nodes"
    assert checks(with_qos("||node=4||", "|||node=64|"))["qos"].found == "normal allows 4 nodes"


def test_a_jobs_qos_may_go_before_that_of_the_partition() -> None:
    check = checks(with_qos("DenyOnLimit,OverPartQOS||node=4||", "||node=64||"))["qos"]
    assert (check.status, check.found) == ("failed", "normal allows 4 nodes")
    assert "qos" not in checks(with_qos("OverPartQOS||node=64||", "||node=4||"))


@pytest.mark.parametrize("profile", [PROFILE, replace(PROFILE, qos="normal")], ids=["default", "named"])
@pytest.mark.parametrize(
    ("limit", "flag", "check"),
    [("MaxTime=00:10:00", "PartitionTimeLimit", "time-limit"), ("MaxNodes=2", "PartitionMaxNodes", "nodes")],
)
def test_a_limit_of_the_partition_that_the_jobs_qos_lifts_is_a_warning(
    limit: str, flag: str, check: str, profile: SlurmProfile
) -> None:
    key = limit.partition("=")[0]
    partition = {"partition": Answer(0, re.sub(rf"{key}=\S+", limit, PARTITION))}
    lifted = with_qos(f"DenyOnLimit,{flag}||||", "||||") | partition
    by_id = checks(lifted, profile)
    assert (by_id[check].status, flag in by_id[check].fix) == ("warning", True)
    assert Preflight(tuple(by_id.values())).passed
    assert checks(with_qos("DenyOnLimit||||", f"{flag}||||") | partition, profile)[check].status == "failed"
    assert checks(nodes("4|idle|gpu:h100:8") | lifted, profile)["nodes"].status == "failed", "too few nodes"


def test_a_limit_that_slurm_does_not_enforce_is_a_warning() -> None:
    lax = CONFIG.replace("associations,limits,qos", "associations,qos")
    check = checks(with_qos("||||", "||node=4||", lax))["qos"]
    assert (check.status, check.found) == ("warning", "big allows 4 nodes")
    assert "does not enforce limits" in check.fix


def test_of_several_partitions_one_qos_that_allows_the_job_is_enough() -> None:
    changes = with_qos("||||", "||node=4||")
    both = changes["partition"].text + PARTITION.replace("=batch", "=long")
    assert "qos" not in checks(changes | {"partition": Answer(0, both)}, replace(PROFILE, partition="batch,long"))


@pytest.mark.parametrize(
    ("own", "of_partition", "words"),
    [
        # sacctmgr add qos bigonly MinTRES=node=16 (StormSurgeLive/asgs#552)
        ("|||||cpu=1,node=16", "|||||", "normal requires at least 16 nodes"),
        ("|||||", "|||||gres/gpu=65", "big requires at least 65 GPUs"),
        ("|||||node=16", "|||||node=32", "big requires at least 32 nodes"),
        ("OverPartQOS|||||node=16", "|||||node=2", "normal requires at least 16 nodes"),
    ],
)
def test_a_qos_with_a_smallest_size_fails_before_the_job_waits_without_an_end(
    own: str, of_partition: str, words: str
) -> None:
    found = checks(with_qos(own, of_partition))["qos"]
    assert (found.status, found.found) == ("failed", words)
    assert "waits without an end: choose more GPUs, or another QOS" in found.fix


def test_a_smallest_size_that_the_job_reaches_is_no_fault() -> None:
    assert "qos" not in checks(with_qos("|||||node=8,gres/gpu=64", "|||||"))
    assert "qos" not in checks(with_qos("|||||node=16", "|||||node=8"))
    lax = CONFIG.replace("associations,limits,qos", "associations,qos")
    assert checks(with_qos("|||||node=16", "|||||", lax))["qos"].status == "warning"


def test_no_size_suits_a_qos_whose_smallest_size_and_limit_both_exclude_the_job() -> None:
    found = checks(with_qos("|||node=4||node=16", "|||||"))["qos"]
    assert (found.status, found.found) == ("failed", "normal allows 4 nodes; normal requires at least 16 nodes")
    assert found.fix == "No size suits these limits: choose another QOS or partition."


def test_a_partition_with_a_smallest_number_of_nodes() -> None:
    changes = {"partition": Answer(0, PARTITION.replace("MinNodes=0", "MinNodes=16"))}
    found = checks(changes)["nodes"]
    assert (found.status, found.found) == ("failed", "at least 16 for one job")
    assert found.fix == "Choose more GPUs, or a partition that allows fewer nodes."
    assert checks(with_qos("PartitionMinNodes||||", "||||") | changes)["nodes"].status == "warning"
    assert checks(changes, plan=replace(PLAN, nodes=16))["nodes"].found == "10 working of 10"


def test_a_limit_for_gpus_of_one_type_counts_if_the_job_requests_the_type() -> None:
    limited = with_qos("||gres/gpu:h100=8||", "||||")
    assert "qos" not in checks(limited)
    assert checks(limited, replace(PROFILE, gpu_type="h100"))["qos"].found == "normal allows 8 GPUs"


@pytest.mark.parametrize(
    ("gres", "gpu_type", "wrong"),
    [
        ("gpu:h100:8", "h100", False),
        ("gpu:nvidia_h100_80gb_hbm3:8(S:0-1)", "nvidia_h100_80gb_hbm3", False),
        # Slurm compares types with case.
        ("gpu:h100:8", "H100", True),
        ("gpu:nvidia_h100_80gb_hbm3:8", "h100", True),
        ("gpu:8", "h100", True),
    ],
)
@pytest.mark.parametrize("gpu_request", ["gres", "gpus-per-node"])
def test_a_gpu_type_must_be_one_that_slurm_has(gres: str, gpu_type: str, wrong: bool, gpu_request: Any) -> None:
    profile = replace(PROFILE, gpu_request=gpu_request, gpu_type=gpu_type)
    by_id = checks(batch(gres), profile)
    found = by_id["gpu-request"]
    assert found.status == ("failed" if wrong else "ok")
    assert found.needed == {"gres": "--gres=gpu:{}:N", "gpus-per-node": "--gpus-per-node={}:N"}[gpu_request].format(
        gpu_type
    )
    if wrong:
        assert "set the cluster's GPU type to one of these" in found.fix
        assert not {"gpus", "nodes", "trial"} & set(by_id)


def test_a_job_that_requests_a_type_cannot_get_other_gpus() -> None:
    two_types = nodes("9|idle|gpu:h100:8", "90|idle|gpu:a100:8")
    found = checks(two_types)["gpus"]
    assert (found.status, "set the cluster's GPU type to h100, or choose a partition" in found.fix) == ("warning", True)
    by_id = checks(two_types, replace(PROFILE, gpu_type="h100"))
    assert (by_id["gpus"].status, by_id["gpus"].found, by_id["nodes"].found) == ("ok", "8 × h100", "9 working of 9")
    by_id = checks(two_types, replace(PROFILE, gpu_type="a100"))
    assert (by_id["gpus"].status, by_id["gpus"].found) == ("failed", "8 × a100")


@pytest.mark.parametrize(
    ("text", "gpus", "status"),
    [
        # Slices by the names of AutoDetect, alone and next to whole GPUs (stackhpc/ansible-slurm-appliance#656).
        ("gpu:nvidia_h100_80gb_hbm3_1g.10gb:56(S:0-1)", 8, "failed"),
        ("gpu:nvidia_h100_80gb_hbm3:2(S:0-1),gpu:nvidia_h100_80gb_hbm3_4g.40gb:8(S:0-1)", 8, "failed"),
        ("gpu:nvidia_h100_80gb_hbm3:2(S:0-1),gpu:nvidia_h100_80gb_hbm3_4g.40gb:8(S:0-1)", 2, "warning"),
        # sheffield_hpc#1778
        ("gpu:h100_pcie:8(S:0-1)", 8, "warning"),
    ],
)
def test_gpus_of_public_sites_that_are_not_the_published_ones(text: str, gpus: int, status: str) -> None:
    by_id = checks(batch(text), plan=with_gpu("h100", gpus))
    assert by_id["gpus"].status == status
    if "4g.40gb" in text and gpus == 2:
        assert "set the cluster's GPU type to nvidia_h100_80gb_hbm3" in by_id["gpus"].fix
        typed = replace(PROFILE, gpu_type="nvidia_h100_80gb_hbm3")
        assert checks(batch(text), typed, with_gpu("h100", 2))["gpus"].status == "ok"


UNNAMED = replace(PROFILE, partition="")
BY_SITE = {"config": Answer(0, CONFIG + "JobSubmitPlugins        = lua\n")}
NO_PLUGIN = {"config": Answer(0, CONFIG + "JobSubmitPlugins        = (null)\n")}


def site_with_default(default: str) -> dict[str, Answer]:
    """Partitions `batch` with GPUs, `cpu` without and `closed` for others; one of them may be the default."""
    texts = [
        PARTITION.replace("=batch", f"={name}").replace("Default=NO", f"Default={'YES' if name == default else 'NO'}")
        for name in ("cpu", "batch", "closed")
    ]
    texts[2] = texts[2].replace("AllowGroups=ALL", "AllowGroups=others")
    rows = (
        "cpu|cpu|up|4:00:00|90|idle|(null)|",
        "batch|batch|up|4:00:00|9|idle|gpu:h100:8|",
        "closed|closed|up|1|1|idle||",
    )
    return {"partition": Answer(0, "\n".join(texts)), "nodes": Answer(0, "".join(f"{row}\n" for row in rows))}


def test_a_site_that_forbids_to_name_a_partition_chooses_one_itself() -> None:
    by_id = checks(site_with_default("cpu") | BY_SITE, UNNAMED)
    assert {check.status for check in by_id.values()} == {"ok"}
    assert by_id["partition"].found == "not named; the default is cpu"
    assert (by_id["nodes"].found, by_id["gpus"].found) == ("9 working of 9", "8 × h100")


def test_without_such_a_plugin_slurms_default_partition_is_checked() -> None:
    good = checks(site_with_default("batch") | NO_PLUGIN, UNNAMED)
    assert (good["partition"].status, good["partition"].found) == ("ok", "not named; Slurm uses its default, batch")
    assert (good["gpus"].status, good["trial"].status) == ("ok", "ok")
    wrong = checks(site_with_default("cpu") | NO_PLUGIN, UNNAMED)
    assert (wrong["gpus"].status, wrong["gpus"].fix) == (
        "failed",
        "Choose a partition with these GPUs, such as batch.",
    )
    none = checks(site_with_default("") | NO_PLUGIN, UNNAMED)["partition"]
    assert (none.status, none.fix) == ("failed", "Name the cluster's partition: Slurm refuses a job without one.")


def test_a_trial_without_a_partition_decides_whether_the_site_takes_it() -> None:
    words = "sbatch: error: No partition specified or system default partition\n"
    found = checks(site_with_default("") | BY_SITE | {"trial": Answer(1, words)}, UNNAMED)
    assert (found["partition"].status, found["trial"].status) == ("ok", "failed")


def test_no_command_names_a_partition_if_the_profile_has_none() -> None:
    commands = slurm_group(Needs(UNNAMED, PLAN)).commands
    assert not [name for name, text in commands.items() if "--partition" in text]
    assert commands["partition"].endswith("scontrol show partition")
    assert " -a " not in commands["nodes"], "a hidden partition is not offered"


@pytest.mark.parametrize("gpu_request", ["none", "gpus-per-node"])
def test_a_job_without_partition_and_gpu_request_may_start_without_gpus(gpu_request: Any) -> None:
    found = checks(site_with_default("cpu") | BY_SITE, replace(UNNAMED, gpu_request=gpu_request))["gpus"]
    assert found.status == ("failed" if gpu_request == "none" else "ok")
    assert ("name the cluster's partition" in found.fix) == (gpu_request == "none")


ONLY_PMI2 = Answer(0, "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: cray_shasta\n")


def test_a_site_without_pmix_can_set_another_mpi_type() -> None:
    """After pyxis#60 and NVIDIA-NeMo/Speech#14829."""
    found = checks({"mpi": ONLY_PMI2})["pmix"]
    assert (found.status, found.found) == ("failed", "only none, pmi2, cray_shasta")
    assert "set the cluster's MPI type to pmi2 and use our script" in found.fix
    found = checks({"mpi": ONLY_PMI2}, replace(PROFILE, mpi="pmi2"))["pmix"]
    assert (found.status, found.title, found.needed) == ("ok", "MPI", "srun --mpi=pmi2")
    found = checks({"mpi": ONLY_PMI2}, replace(PROFILE, mpi="openmpi"))["pmix"]
    assert (found.status, "Set the cluster's MPI type to one of these" in found.fix) == ("failed", True)
    assert "--mpi=pmi2" in slurm_group(Needs(replace(PROFILE, mpi="pmi2"))).commands["pmix"]


def test_only_pmix_itself_lacks_a_library_of_pmix() -> None:
    words = Answer(
        1, "srun: error: Couldn't find the specified plugin name for mpi/pmi2\nsrun: error: Invalid MPI type 'pmi2'\n"
    )
    found = checks({"pmix": words}, replace(PROFILE, mpi="pmi2"))["pmix"]
    assert (found.status, "Invalid MPI type" in found.found) == ("failed", True)
    assert "libpmix" not in found.fix


def test_fields_that_are_not_set_are_not_checked() -> None:
    assert not {"reservation", "constraint", "exclude", "segment", "qos"} & set(checks())
    commands = slurm_group(Needs(PROFILE, PLAN)).commands
    assert not {"reservations", "exclude"} & set(commands)


def test_every_profile_value_is_one_argument_of_its_command() -> None:
    profile = replace(PROFILE, account="$(id)", partition="a;b", exclude="c d", slurm_params="comment=e f;")
    trial = shlex.split(slurm_group(Needs(profile, PLAN)).commands["trial"], comments=True)
    assert {"--account=$(id)", "--partition=a;b", "--exclude=c d", "--comment=e f"} <= set(trial)


def test_the_trial_is_of_the_very_job() -> None:
    ours = slurm_group(Needs(replace(PROFILE, memory="4000G"), PLAN)).commands["trial"]
    assert "--mem=4000G" in shlex.split(ours, comments=True)
    assert "no_sbatch_variables\n" in ours
    assert "no_sbatch_variables" not in slurm_group(Needs(PROFILE, PLAN, sbatch_variables=True)).commands["trial"]


answers = st.builds(
    Answer, st.integers(-1, 200), st.text() | st.text("|=:,gpu h100\n/\x1b[31m0123456789KUPn-", max_size=90)
)
REQUESTS = replace(PROFILE, reservation="r", constraint="c", exclude="e", segment=2, qos="q")


@given(st.fixed_dictionaries(dict.fromkeys(SLURM, answers)), st.sampled_from([None, PLAN]))
def test_the_report_is_clean_text_for_any_answer_of_a_cluster(facts: Answers, plan: Plan | None) -> None:
    for check in map(clean_check, slurm_checks(facts, Needs(REQUESTS, plan))):
        for text in (check.found, check.needed, check.fix):
            assert text == clean_line(text)
        assert check.found
        assert check.needed
        assert (check.fix == "") == (check.status == "ok")


REFUSED = Answer(1, "sacct: error: slurmdbd: Operation not permitted\n")


def test_accounting_that_refuses_is_reported_once() -> None:
    both = checks({"accounting": REFUSED, "associations": Answer(126, "sh: 1: sacctmgr: Permission denied\n")})
    assert "account" not in both
    check = both["accounting"]
    assert check.status == "warning"
    assert "Operation not permitted; sh: 1: sacctmgr: Permission denied" in check.found
    assert "runs end by the queue and their logs" in check.fix
    assert "Slurm refuses the job" in check.fix
    one = checks({"accounting": REFUSED})
    assert (one["accounting"].status, one["account"].status) == ("warning", "ok")
    assert "Slurm refuses the job" not in one["accounting"].fix


@pytest.mark.parametrize(
    "answer", [Answer(0, ""), Answer(124, ""), Answer(1, "Slurm accounting storage is disabled\n")]
)
def test_accounting_that_answers_or_may_answer_later_has_no_check(answer: Answer) -> None:
    assert "accounting" not in checks({"accounting": answer, "associations": answer})


def test_a_controller_that_cannot_be_asked_has_its_true_reason() -> None:
    check = checks({"ping": Answer(1, "scontrol: fatal: Could not establish a configuration source\n")})["controller"]
    assert check.found == "scontrol: fatal: Could not establish a configuration source"
    assert "no Slurm configuration" in check.fix
    assert "SLURM_CONF" in check.fix
    assert "down" not in check.fix


def test_a_test_submission_that_did_not_reach_slurm_is_no_rejection() -> None:
    words = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n"
    check = checks({"trial": Answer(1, words)})["trial"]
    assert check.status == "warning"
    assert "change what it names" not in check.fix
