from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.slurm.errors import SlurmError
from llmb_tui.cluster.slurm.inventory import ClusterInventory, Directory, parse_inventory
from llmb_tui.cluster.slurm.partition import Gpus
from tests.cluster.examples import PROFILE

GOOD = {
    "ping": Answer(0, "Slurmctld(primary) at ctl is UP\n"),
    "config": Answer(0, "ClusterName             = eos\nSelectType              = select/cons_tres\n"),
    "nodes": Answer(
        0,
        "login|login|up|1:00:00|2|idle|(null)|(null)\n"
        "cpu|cpu*|up|1:00:00|9|idle|(null)|(null)\n"
        "small|small|up|1:00:00|4|idle|gpu:h100:8|(null)\n"
        "batch|batch|up|1:00:00|99|idle|gpu:h100:8|(null)\n"
        "old|old|down|1:00:00|900|idle|gpu:a100:8|(null)\n",
    ),
    "reservations": Answer(0, "ReservationName=bench StartTime=1\nReservationName=maint_1 StartTime=2\n"),
    "associations": Answer(0, "eos|a||normal,gold|\neos|b||normal|\neos|a|batch|normal|\nother|c||x|\n"),
    "default": Answer(0, "b\n"),
    "who": Answer(0, "me\n/home/me\n"),
    "directories": Answer(0, "1000000000|/lustre/me/llmb\n|/scratch/me/llmb\n5|/bad dir/llmb\n9|/lustre/me/llmb\n"),
}
EMPTY = replace(PROFILE, account="", partition="", install_dir="")


def offers(changes: dict[str, Answer] | None = None) -> ClusterInventory:
    return parse_inventory({**GOOD, **(changes or {})})


def test_everything_that_a_profile_needs_is_offered() -> None:
    result = offers()
    assert (result.user, result.home) == ("me", "/home/me")
    assert (result.accounts, result.default_account) == (("a", "b"), "b")
    assert [partition.name for partition in result.partitions] == ["login", "cpu", "small", "batch", "old"]
    assert result.qos == ("normal", "gold")
    assert result.reservations == ("bench", "maint_1")
    assert result.gpu_request == "gpus-per-node"
    assert result.partitions[2].gpus == (Gpus("h100", 8),)
    assert result.cpu_partitions == ("login", "cpu")
    assert result.directories == (Directory("/lustre/me/llmb", 1024.0), Directory("/scratch/me/llmb", None))


def test_an_empty_profile_gets_suitable_values() -> None:
    filled = offers().with_defaults(EMPTY)
    assert (filled.account, filled.partition, filled.install_dir) == ("b", "batch", "/lustre/me/llmb")
    assert offers().with_defaults(PROFILE) == PROFILE


def test_the_sites_default_partition_is_chosen_if_it_has_gpus() -> None:
    nodes = Answer(0, GOOD["nodes"].text.replace("small|small|", "small|small*|").replace("cpu*", "cpu"))
    partition = offers({"nodes": nodes}).default_partition
    assert partition is not None
    assert partition.name == "small"


SLICES, WHOLE, CPU = (
    "slices|slices*|up|1:00|99|idle|gpu:nvidia_h100_80gb_hbm3_1g.10gb:56|\n",
    "whole|whole|up|1:00|4|idle|gpu:h100:8|\n",
    "cpu|cpu*|up|1:00|9|idle|(null)|\n",
)
FEW = "few|few|up|1:00|2|idle|gpu:h100:8|\nfew|few|up|1:00|99|idle|gpu:1g.10gb:56|\n"


@pytest.mark.parametrize(
    ("nodes", "partition", "gpu_request"),
    [
        (SLICES + WHOLE, "whole", "gpus-per-node"),
        (WHOLE + FEW, "whole", "gpus-per-node"),
        (SLICES.replace("*", "") + CPU, "cpu", "gpus-per-node"),
        (CPU + WHOLE, "whole", "gpus-per-node"),
        (CPU, "cpu", "none"),
    ],
)
def test_a_partition_is_suggested_for_its_whole_gpus(nodes: str, partition: str, gpu_request: str) -> None:
    filled = offers({"nodes": Answer(0, nodes)}).with_defaults(EMPTY)
    assert (filled.partition, filled.gpu_request) == (partition, gpu_request)


def test_a_partition_of_slices_is_none_for_work_without_gpus() -> None:
    assert offers({"nodes": Answer(0, SLICES + WHOLE + CPU)}).cpu_partitions == ("cpu",)


def test_with_accounting_off_the_user_pays() -> None:
    off = Answer(1, "You are not running a supported accounting_storage plugin\n")
    result = offers({"associations": off, "default": off})
    assert (result.accounts, result.default_account, result.qos) == ((), None, ())
    assert result.with_defaults(EMPTY).account == "me"


def test_without_the_database_all_other_choices_are_offered() -> None:
    down = Answer(1, "sacctmgr: error: Connection refused\n")
    result = offers({"associations": down, "default": down})
    assert result.accounts == ()
    assert len(result.partitions) == 5


@pytest.mark.parametrize(
    ("select", "nodes", "request_style"),
    [
        ("select/cons_tres", "gpu:8", "gpus-per-node"),
        ("select/linear", "gpu:8", "gres"),
        ("select/cons_res", "gpu:h100:8(S:0-1)", "gres"),
        ("select/cons_tres", "(null)", "none"),
    ],
)
def test_the_gpu_request_that_fits(select: str, nodes: str, request_style: str) -> None:
    result = offers(
        {"config": Answer(0, f"SelectType = {select}\n"), "nodes": Answer(0, f"p|p*|up|1:00|4|idle|{nodes}|x\n")}
    )
    assert result.gpu_request == request_style


def test_without_nodes_no_gpu_request_is_offered() -> None:
    assert offers({"nodes": Answer(0, "")}).gpu_request is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ping": Answer(1, "Slurmctld(primary) at ctl is DOWN\n")}, "is DOWN"),
        ({"ping": Answer(124, "")}, "in time"),
        ({"ping": Answer(127, "sh: scontrol: not found\n")}, "not found"),
        ({"nodes": Answer(1, "slurm_load_partitions: Socket timed out\n")}, "timed out"),
    ],
)
def test_a_slurm_that_does_not_answer_is_reported(changes: dict[str, Answer], words: str) -> None:
    with pytest.raises(SlurmError) as caught:
        offers(changes)
    assert words in str(caught.value)
    assert caught.value.fix
