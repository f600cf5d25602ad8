"""Names are replaced; texts that only resemble names are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmb_tui.cluster.job import Job
from llmb_tui.evidence.anonymous import Anonymizer
from tests.evidence.evidence_runs import SITE
from tests.kit.runs import make_run


@pytest.fixture
def anonymizer() -> Anonymizer:
    made = Anonymizer()
    job = Job("7", "", "COMPLETED", node_list="cn[001-003],gpu-a", bad_nodes=("cn002 is drained: fan",))
    made.learn_run(make_run(job=job), SITE)
    return made


def replaced(anonymizer: Anonymizer, folder: Path, text: str) -> str:
    path = folder / "text"
    path.write_text(text)
    anonymizer.learn_file(path)
    anonymizer.replace_in(path)
    return path.read_text()


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("srun: error: cn001: task 3: Killed", "srun: error: host-1: task 3: Killed"),
        ("cn[001-002],gpu-a", "host-1,host-2,host-3"),
        ("cn077 and cn0777 and cn07", "host-1 and cn0777 and cn07"),
        ("#SBATCH --exclude=cn[009-010]", "#SBATCH --exclude=host-1,host-2"),
        ("cn001,cn[007-008] a,cn[007-008]", "host-1,host-2,host-3 a,host-2,host-3"),
        ("slurm-cn[001-002].out xy-z[001-002]", "slurm-host-1,host-2.out xy-z[001-002]"),
        (
            "core.cn001.12345 /tmp/nccl-cn001.log torch-cn003 hsn0.cn001",
            "core.host-1.12345 /tmp/nccl-host-1.log torch-host-2 hsn0.host-1",
        ),
        ("CN001 timeout to CN003.cluster.example.org", "host-1 timeout to host-2"),
        ("f(alicem,x[0],alicem,y[1]) alicem,cn[001-002]", "f(user-1,x[0],user-1,y[1]) user-1,host-1,host-2"),
        ("cn001.hpc.example.org,foo[1] cn001.log,cn[001-002]", "host-1,foo[1] host-1.log,host-1,host-2"),
        ("mds1.hpc.example.org,cn[001-002]", "host-1,host-2,host-3"),
        ("job-alicem,cn[001] alicem-cn[001]", "job-user-1,host-1 user-1-host-1"),
        (
            "CN001,cn[002] nccl-cn001.log,foo[1-2] hsn0.cn001,ib[0]",
            "host-1,host-2 nccl-host-1.log,foo[1-2] hsn0.host-1,ib[0]",
        ),
        ("cn[3-1],cn001 cn[001", "cn[3-1],host-1 cn[001"),
        ("mycn001 cn0013 xcn[001-002]", "mycn001 cn0013 xcn[001-002]"),
        ("cn001.cluster.example.org:29500", "host-1:29500"),
        ("login7.hpc.example.org and mds1.hpc.example.org", "host-1 and host-2"),
        ("alicem alicem_bench malicem alicem2", "user-1 user-1_bench malicem alicem2"),
        ("/lustre/fs1/home/alicem/x /Users/alicem", "/home/user-1/x /home/user-1"),
        ("USER=bob\n/scratch/bob/x max_bob bobby", "USER=user-1\n/scratch/user-1/x max_bob bobby"),
        ("/home/carol/x by carol, /home/ubuntu/y", "/home/user-1/x by user-1, /home/ubuntu/y"),
        ("/global/homes/j/jsmith/out by jsmith", "/home/user-1/out by user-1"),
        ("/home/j/js/jsmith/out and /u/home/jsm/jsmith", "/home/user-1/out and /home/user-1"),
        ("/home/physics/alice/x, /home/physics/bob/x", "/home/user-1/user-2/x, /home/user-1/user-3/x"),
        ("HOME=/home/physics/frank\n/scratch/frank/x", "HOME=/home/user-1/user-2\n/scratch/user-2/x"),
        ("/home/users/erin/llmb.", "/home/user-1/user-2."),
        ("USER=erin /home/users/erin/llmb.", "USER=user-1 /home/user-1/llmb."),
        ("/home/müller/x at «/Users/jörg.s», /home/Óscar.", "/home/user-1/x at «/home/user-2», /home/user-3."),
        ("USER=björk\n“/scratch/björk/x”", "USER=user-1\n“/scratch/user-1/x”"),
        ("/home/alicem/llmb/x, /home/alicem/cn001/x", "/home/user-1/llmb/x, /home/user-1/host-1/x"),
        ("/home/ubuntu/alicem/y, 7|/home/carol|7", "/home/ubuntu/user-1/y, 7|/home/user-2|7"),
        (
            "tcp://10.1.2.3:29500 MASTER_ADDR=10.1.2.4 [10.1.2.3]",
            "tcp://address-1:29500 MASTER_ADDR=address-2 [address-1]",
        ),
        ("fe80::1ff:fe23:4567:890a, ::1, 127.0.0.1, 0.0.0.0", "address-1, ::1, 127.0.0.1, 0.0.0.0"),
        (
            "NET/Socket : Using [0]ens3:2001:db8:17::42<0> [1]ib0:fe80::ba59:9fff:fe03:d4a1%ib0<0> ens4:10.1.2.3<0>",
            "NET/Socket : Using [0]ens3:address-1<0> [1]ib0:address-2%ib0<0> ens4:address-3<0>",
        ),
        ("remote 2001:DB8:17::42<38211>, 2001:db8:17::42", "remote address-1<38211>, address-1"),
        ("[::ffff:10.1.2.3]:29500 lo:::1<0> 10.1.2.3", "[address-1]:29500 lo:::1<0> address-1"),
        ("std:add<0> vector:cafe<1> iteration 12:34<5>", None),
        ("link 0c:42:a1:00:ff:02", "link address-1"),
        ("told dave@example.org", "told mail-1"),
        ("cuDNN version 9.1.0.70 nvidia-cudnn-cu12==9.1.0.70 CUDNN_VERSION=9.1.0.70", None),
        ("nemotron4@25.04 at 2025-01-02 07:15:13 | epoch 0: 12:34 c10::Error std::a model[0-1] [1,2]", None),
        ("train_step_timing in s: 1.98 | global_step: 4 | 1.2.3", None),
        ("localhost root /root/.cache", None),
    ],
)
def test_names_have_aliases_and_other_words_stay(
    anonymizer: Anonymizer, tmp_path: Path, text: str, without: str | None
) -> None:
    assert replaced(anonymizer, tmp_path, text) == (without or text)


def test_the_cluster_has_the_same_alias_in_record_and_accounting(anonymizer: Anonymizer, tmp_path: Path) -> None:
    record, accounting = tmp_path / "run.json", tmp_path / "accounting.txt"
    record.write_text(json.dumps({"cluster": "eos", "note": "eos is a token too", "at": "/home/müller"}))
    accounting.write_text("JobID|Cluster|NodeList|JobName\n7|eos|cn[001-002]|a|b\n")
    anonymizer.replace_in_record(record)
    anonymizer.replace_in_accounting(accounting)
    without = {"cluster": "cluster-1", "note": "eos is a token too", "at": "/home/user-1"}
    assert json.loads(record.read_text()) == without
    assert accounting.read_text() == "JobID|Cluster|NodeList|JobName\n7|cluster-1|host-1,host-2|a|b\n"


def test_a_name_that_may_be_a_word_is_replaced_only_as_it_is_written(tmp_path: Path) -> None:
    made = Anonymizer()
    made.learn_run(make_run(job=Job("7", "", "COMPLETED", node_list="gpu0")), SITE)
    assert replaced(made, tmp_path, "gpu0: GPU0 GPU[0-3] /dev/GPU0 1.gpu0") == "host-1: GPU0 GPU[0-3] /dev/GPU0 1.gpu0"


def test_bytes_that_are_no_text_stay(anonymizer: Anonymizer, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\xff\xfe cn001 \x00\r\n" * 3)
    anonymizer.replace_in(path)
    assert path.read_bytes() == b"\xff\xfe host-1 \x00\r\n" * 3


@pytest.mark.parametrize("unit", ["a", "a.", "a,", "/a"])
def test_a_very_long_line_takes_one_pass(anonymizer: Anonymizer, tmp_path: Path, unit: str) -> None:
    line = unit * (400_000 // len(unit))  # a word took 160 s, as the beginning of an address
    assert replaced(anonymizer, tmp_path, f"{line} cn001").endswith(" host-1")
