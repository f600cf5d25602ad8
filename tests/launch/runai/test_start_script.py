"""The start script as a pod runs it: by bash, in a folder of the test, with stand-ins for the programs of the image."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from llmb_tui.launch.runai.workload import FILES, RUN_FOLDER, creation_request
from llmb_tui.plan.selection import Selection
from tests.launch.runai.workload_cases import NEMOTRON_340B, PLACED, PROFILE, SMALL, request_of, spec_of

TORCHRUN = """#!/bin/bash
printf '%s\\n' "$@" >"$OUT/torchrun"
while [ "$1" != --no-python ]; do
    case $1 in --nproc-per-node) ranks=$2 ;; --node-rank) node=$2 ;; esac
    shift
done
shift
for ((rank = 0; rank < ranks; rank++)); do
    LOCAL_RANK=$rank RANK=$((node * ranks + rank)) "$@" &
done
code=0
while wait -n; last=$?; [ $last != 127 ]; do [ $last = 0 ] || code=$last; done
exit $code
"""
PYTHON = """#!/bin/bash
printf '%s\\n' "$*" >"$OUT/process-$RANK"
cmp "$2" "$EXPECTED" || exit 9
if [ -n "$SLOW" ]; then exec sleep 30; fi
exit "${CODE:-0}"
"""
NUMACTL = """#!/bin/bash
[ -z "$BOUND" ] && [ "$3" = true ] && exit 1
echo "$1 $2" >"$OUT/bound-$RANK"
shift 2
exec "$@"
"""
TOOLS = "bash sh mkdir ln base64 tar gzip timeout cat cmp sleep true rm".split()


class Pod:
    """One pod of a workload, as far as its command sees it."""

    def __init__(self, folder: Path, selection: Selection) -> None:
        self.selection = selection
        self.out, self.bin, self.root = folder / "out", folder / "bin", folder / "root"
        for path in (self.out, self.bin, self.root):
            path.mkdir()
        for name in TOOLS:
            (self.bin / name).symlink_to(str(shutil.which(name)))
        for name, text in {"torchrun": TORCHRUN, "python": PYTHON, "numactl": NUMACTL}.items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        # The volume and the run's folder are below the test's folder.
        work_dir = f"{self.root}/data/llmb"
        self.spec = spec_of(request_of(selection))
        body = creation_request(self.spec, PLACED)["spec"]
        command = f"{body['command']} {body['args']}".replace(PROFILE.work_dir, work_dir)
        self.command = shlex.split(command.replace(RUN_FOLDER, f"{self.root}{RUN_FOLDER}"))
        self.variables = {variable["name"]: variable["value"] for variable in body["environmentVariables"]}

    def run(self, **more: str) -> subprocess.CompletedProcess[str]:
        launch = self.root.parent / "launch.json"
        launch.write_text(dict(self.spec.files)["configs/launch.json"])
        given = {"PATH": str(self.bin), "OUT": str(self.out), "EXPECTED": str(launch)}
        return subprocess.run(
            self.command,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**self.variables, **given, **more},
        )

    def printed(self, kind: str) -> list[str]:
        return [path.read_text().strip() for path in sorted(self.out.glob(f"{kind}-*"))]


@pytest.fixture(params=[SMALL, NEMOTRON_340B], ids=["one-node", "distributed"])
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    return Pod(tmp_path, request.param)


@pytest.fixture
def node(tmp_path: Path) -> Pod:
    """The pod of a workload of one node."""
    return Pod(tmp_path, SMALL)


def test_each_gpu_has_one_process_with_the_entry_script_and_its_settings(pod: Pod) -> None:
    result = pod.run(RANK="0", MASTER_ADDR="run-master-0", MASTER_PORT="23456")
    assert result.returncode == 0, result.stderr
    folder = pod.root / "nemo_run"
    assert (
        pod.printed("process") == [f"{folder}/code/pretrain.py {folder}/configs/launch.json"] * pod.spec.gpus_per_node
    )
    for path, text in pod.spec.files:
        assert (folder / path).read_text() == text
    asked = (pod.out / "torchrun").read_text().split()
    words = dict(zip(asked[:10:2], asked[1:10:2], strict=True))
    assert words == {
        "--nnodes": str(pod.spec.nodes),
        "--nproc-per-node": str(pod.spec.gpus_per_node),
        "--node-rank": "0",
        "--master-addr": "run-master-0",
        "--master-port": "23456",
    }
    assert json.loads((folder / "configs/plan.json").read_text())["steps"] == 50


def test_without_the_operators_variables_a_node_is_its_own_master(node: Pod) -> None:
    assert node.run().returncode == 0
    asked = (node.out / "torchrun").read_text()
    assert "--node-rank\n0\n--master-addr\nlocalhost\n--master-port\n29500\n" in asked


def test_a_worker_starts_the_global_ranks_of_its_node(tmp_path: Path) -> None:
    pod = Pod(tmp_path, NEMOTRON_340B)
    assert pod.run(RANK="3", MASTER_ADDR="m", BOUND="yes").returncode == 0
    ranks = sorted(int(path.name.partition("-")[2]) for path in pod.out.glob("process-*"))
    assert ranks == list(range(24, 32))


def test_ranks_are_bound_if_the_node_allows_it_and_otherwise_print_a_note(tmp_path: Path) -> None:
    pod = Pod(tmp_path, NEMOTRON_340B)
    refused = pod.run(RANK="0")
    assert refused.returncode == 0
    assert refused.stderr.count("is not bound to a NUMA node") == 8
    assert len(pod.printed("process")) == 8
    assert "not bound" not in pod.run(RANK="0", BOUND="yes").stderr
    bound = pod.printed("bound")
    assert bound == ["--cpunodebind=0 --membind=0"] * 4 + ["--cpunodebind=1 --membind=1"] * 4


@pytest.mark.parametrize("code", ["1", "42"])
def test_how_the_training_ends_is_how_the_pod_ends(node: Pod, code: str) -> None:
    assert node.run(CODE=code).returncode == int(code)


def test_the_time_limit_ends_it(node: Pod) -> None:
    limit = next(word for word in node.command[-1].split() if word.isdecimal())
    node.command[-1] = node.command[-1].replace(f" {limit} ", " 0.2 ", 1)
    assert node.run(SLOW="yes").returncode == 124


@pytest.mark.parametrize("missing", ["tar", "base64", "torchrun", "timeout"])
def test_a_tool_missing_in_the_image_is_reported_and_ends_the_start(node: Pod, missing: str) -> None:
    (node.bin / missing).unlink()
    result = node.run()
    assert result.returncode not in (0, 1)
    assert missing in result.stderr
    assert not node.printed("process")


@pytest.mark.parametrize("text", ["", "bm8gYXJjaGl2ZQ==", "%%%"])
def test_files_that_did_not_arrive_end_it(node: Pod, text: str) -> None:
    node.variables[FILES] = text
    result = node.run()
    assert result.returncode != 0
    assert result.stderr
    assert not node.printed("process")


def test_checkpoints_are_kept_on_the_volume(node: Pod) -> None:
    assert node.run().returncode == 0
    link = node.root / "nemo_run/code/nemo_experiments"
    assert os.readlink(link) == f"{node.root}/data/llmb/{node.spec.workload}/nemo_experiments"
    assert link.is_dir()
    assert node.run().returncode == 0, "a pod that is started again finds what the first has made"
