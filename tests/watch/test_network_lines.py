"""NCCL's lines about the network, selected from the files of a run by the script on the login node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text

SCRIPT = remote_text("inside.sh", "network_lines.sh")
AWKS = [name for name in ("mawk", "gawk", "busybox") if shutil.which(name)]


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "nccl").mkdir(parents=True)
    (folder / "nccl" / "README").write_text("What NCCL writes.\n")
    return folder


def picked(folder: Path, awk: str = AWKS[0]) -> subprocess.CompletedProcess[str]:
    programs = folder.parent / f"bin-{awk}"
    programs.mkdir(exist_ok=True)
    if not (programs / "awk").exists():
        (programs / "awk").symlink_to(str(shutil.which(awk)))
    command = ["sh", "-c", SCRIPT, "sh", "TOKEN", str(folder)]
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def inform(host: str, text: str) -> str:
    return f"{host}:123:456 [0] NCCL INFO {text}\n"


def write(folder: Path, host: str, *texts: str, process: int = 123) -> None:
    lines = "".join(inform(host, text) for text in texts)
    (folder / "nccl" / f"{host}.{process}").write_text(f"NCCL version 2.25.1+cuda12.8\n{lines}")


@pytest.mark.parametrize("awk", AWKS)
def test_the_network_and_the_first_channels_of_each_transport_are_picked(run_folder: Path, awk: str) -> None:
    channels = (
        "Channel 00/0 : 63[7] -> 0[0] [receive] via NET/IB/0/GDRDMA",
        "Channel 01/0 : 63[7] -> 0[0] [receive] via NET/IB/1/GDRDMA",
        "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
        "Channel 00 : 0[0] -> 2[2] via SHM/direct/direct",
        "Channel 02/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA",
    )
    write(run_folder, "cn001", "Bootstrap : Using eth0:10.0.0.1<0>", "Using network IB", *channels, "Using network IB")
    write(run_folder, "cn002", "NET/Socket : Using [0]eth0:10.0.0.2<0>", "Using network Socket", process=9)
    done = picked(run_folder, awk)
    assert (done.returncode, done.stderr) == (0, "")
    kept = ("Using network IB", channels[0], channels[5], channels[2], channels[4])
    lines = "".join(inform("cn001", text) for text in kept)
    socket = inform("cn002", "Using network Socket")
    assert done.stdout == f"\x1eTOKEN lines\n== cn001\n{lines}== cn002\n{socket}"


@pytest.mark.parametrize("awk", AWKS)
def test_kept_statements_are_bounded(run_folder: Path, awk: str) -> None:
    pairs = [f"Channel 00/0 : {n}[0] -> 0[0] [receive] via NET/IB/0" for n in range(8, 800, 8)]
    others = [f"Channel 00/0 : 0[0] -> 1[1] via NEW{n}/X" for n in range(50)]
    write(run_folder, "cn001", "Using network IB" + "x" * 5000, *others, *pairs)
    texts = picked(run_folder, awk).stdout.split("\n")[2:-1]
    assert (len(texts), max(map(len, texts))) == (20, 300)
    assert [line for line in texts if "NET/IB" in line] == [inform("cn001", pair).strip() for pair in pairs[:4]]
    for number in range(400):
        write(run_folder, f"cn{number:03}", *others)
    whole = picked(run_folder, awk).stdout
    assert 250_000 < len(whole) <= 262_144 + len("\x1eTOKEN lines\n")
    assert whole.endswith("\n")


def test_no_link_is_followed_and_no_other_file_read(run_folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(inform("cn009", "Using network IB"))
    (run_folder / "nccl" / "cn001.1").symlink_to(secret)
    (run_folder / "nccl" / "cn002.2").mkdir()
    (run_folder / "nccl" / "cn003;x.3").write_text(secret.read_text())
    (run_folder / "nccl" / "cn004.txt").write_text(secret.read_text())
    (run_folder / "nccl" / "cn005.5").write_text("nothing of the kind\n")
    assert picked(run_folder).stdout == "\x1eTOKEN lines\n"
    shutil.move(run_folder / "nccl", tmp_path / "elsewhere")
    assert picked(run_folder).returncode == 1
    (run_folder / "nccl").symlink_to(tmp_path / "elsewhere")
    write(run_folder, "cn001", "Using network IB", process=7)
    through_a_link = picked(run_folder)
    assert (through_a_link.returncode, through_a_link.stdout) == (1, "")
