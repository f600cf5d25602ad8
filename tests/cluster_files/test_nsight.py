"""Output of `nsys stats` for a profile, in the format of nsys 2024.2; older versions name the report differently."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster_files.nsight import parse_kernels, summarize
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import SHELL_PRINTS, LoginNode
from tests.kit.programs import all_but

HEAD = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
BEFORE = """Generating SQLite file /tmp/tmp.1/profile.sqlite from /l/profile_1.nsys-rep
Processing [/tmp/tmp.1/profile.sqlite] with [/opt/nsight-systems/host-linux-x64/reports/cuda_gpu_kern_sum.py]...

"""
KERNELS = """60.0,6000000000,1200,5000000.0,4900000.0,1000,9000000,1.5,"void cutlass::Kernel<float, (int)3>(T1::Params)"
25.0,2500000000,300,8333333.3,8000000.0,1000,9000000,1.5,"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm *)"
10.0,1000000000,300,3333333.3,3000000.0,1000,9000000,1.5,ncclDevKernel_AllGather_RING_LL
3.0,300000000,10,30000000.0,3000000.0,1000,9000000,1.5,a
1.0,100000000,10,10000000.0,3000000.0,1000,9000000,1.5,b
1.0,100000000,10,10000000.0,3000000.0,1000,9000000,1.5,c
"""
# Accepts the options that the program passes to nsys, and leaves the database that nsys leaves.
STAND_IN = """#!/bin/sh
[ "$1 $2 $4 $5 $6 $7 $8" = "stats --report --format csv --output - --sqlite" ] || exit 1
: > "$9"
case $3 in
    {report}) cat << 'END'
{text}END
    ;;
    *) echo "ERROR: Report '$3' could not be found."; exit 1 ;;
esac
"""


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the stand-in, first in PATH; temporary folders are made in `tmp`."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{all_but('nsys', tmp_path / 'programs')}")
    return tmp_path / "bin" / "nsys"


def put(nsys: Path, text: str = BEFORE + HEAD + KERNELS, report: str = "cuda_gpu_kern_sum") -> None:
    nsys.write_text(STAND_IN.format(report=report, text=text))
    nsys.chmod(0o755)


@pytest.mark.parametrize("report", ["cuda_gpu_kern_sum", "gpukernsum"])
def test_a_summary_by_nsys_leaves_nothing_behind(nsys: Path, tmp_path: Path, report: str) -> None:
    """6, 2.5, 1, 0.3, 0.1 and 0.1 s are 10 s in total; 35 % of them are NCCL's."""
    put(nsys, report=report)
    summary = summarize(LocalConnection("here"), "/l/profile_1.nsys-rep")
    assert summary is not None
    assert summary.total_s == pytest.approx(10.0)
    assert summary.nccl_pct == pytest.approx(35.0)
    assert [(kernel.time_pct, kernel.launches) for kernel in summary.kernels] == [
        (60.0, 1200), (25.0, 300), (10.0, 300), (3.0, 10), (1.0, 10),
    ]  # fmt: skip
    assert summary.kernels[0].name == "void cutlass::Kernel<float, (int)3>(T1::Params)"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_without_nsys_there_is_no_summary(nsys: Path) -> None:
    assert not nsys.exists()
    assert summarize(LocalConnection("here"), "/l/profile_1.nsys-rep") is None


@pytest.mark.parametrize("printed", SHELL_PRINTS)
def test_output_of_a_login_shell_is_not_part_of_the_answer(nsys: Path, tmp_path: Path, printed: str) -> None:
    with closing(LoginNode(tmp_path)) as node, closing(SlurmCluster(node.profile())) as session:
        node.shell_prints = printed
        assert summarize(session, "/l/profile_1.nsys-rep") is None
        put(nsys, HEAD + KERNELS)
        assert summarize(session, "/l/profile_1.nsys-rep") is not None


def test_a_profile_without_kernels_is_reported(nsys: Path) -> None:
    put(nsys, "SKIPPED: /tmp/profile.sqlite does not contain CUDA kernel data.\n")
    with pytest.raises(LlmbError, match="gives no result"):
        summarize(LocalConnection("here"), "/l/profile_1.nsys-rep")


def test_hostile_or_truncated_rows_are_ignored() -> None:
    text = HEAD + '50.0,5e9,2,1,1,1,1,1,"\x1b[2Jevil"\n30.0,1e400,3,1,1,1,1,1,inf\n20.0,x,3,1,1,1,1,1,c\n1.0,100'
    summary = parse_kernels(text)
    assert summary is not None
    assert [kernel.name for kernel in summary.kernels] == ["evil"]
    assert parse_kernels("no table") is None


@pytest.mark.parametrize("odd", ['9.0,9e9,2,1,1,1,1,1,"' + "x" * 140_000 + '"', '9.0,9e9,2,1,1,1,1,1,"cut'])
def test_a_field_that_is_too_long_or_whose_quote_was_cut_hides_no_other(odd: str) -> None:
    summary = parse_kernels(f"{HEAD}{odd}\n" + "1.0,1e9,1,1,1,1,1,1,kernel\n" * 9000)
    assert summary is not None
    assert summary.total_s == pytest.approx(9000 + 9 * odd.endswith("cut"))
    assert [kernel.name for kernel in summary.kernels][-1] == "kernel"
    assert parse_kernels("Time (%)," + "x" * 140_000) is None
