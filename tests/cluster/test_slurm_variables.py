"""Variables of Slurm in the user's shell. The stand-ins obey them as Slurm does: an option has priority."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from llmb_tui.cluster.batch import Answer, batch_answers, batch_script
from llmb_tui.cluster.slurm.client import look_commands, read_jobs
from llmb_tui.cluster.slurm.partition import SINFO_FORMAT, parse_partitions, sinfo
from llmb_tui.cluster.slurm.queue import SEPARATOR

# Set by users of LANL/BEE#889 and of others.
VARIABLES = {
    "SQUEUE_FORMAT": "%.18i",
    "SQUEUE_FORMAT2": "JobID:10",
    "SQUEUE_USERS": "root",
    "SQUEUE_STATES": "PD",
    "SQUEUE_PARTITION": "cpu",
    "SQUEUE_FEDERATION": "1",
    "SQUEUE_ARRAY": "1",
    "SACCT_FORMAT": "jobid%15",
    "SACCT_FEDERATION": "1",
    "SINFO_FORMAT": "%n %G",
    "SINFO_PARTITION": "cpu",
    "SLURM_TIME_FORMAT": "relative",
    "SLURM_CLUSTERS": "llmbrig",
}
HAS = 'has() { case " $ARGS " in *" $1 "*) ;; *) return 1 ;; esac; }\n'
"""Whether the command line has an option."""
QUEUED = SEPARATOR.join(("7", "PENDING", "Priority", "8", "0:00", "0", "0:0", "{starts}", "", "name"))
ENDED = SEPARATOR.join(("9", "COMPLETED", "0:0", "2", "60", "cn[1-2]", "name"))
PROGRAMS = {
    "squeue": f"""
[ -z "$SQUEUE_FORMAT$SQUEUE_FORMAT2" ] || has -O || {{ echo 7; exit; }}
[ -z "$SQUEUE_USERS" ] || has --me || exit 0
[ -z "$SQUEUE_STATES" ] || has '-t all' || exit 0
[ -z "$SQUEUE_PARTITION" ] || exit 0
[ -z "$SLURM_CLUSTERS" ] || echo "CLUSTER: $SLURM_CLUSTERS"
case $SLURM_TIME_FORMAT in %s) starts=1790000000 ;; *) starts='Tomorr 09:30' ;; esac
echo "{QUEUED.format(starts="$starts")}"
""",
    "sacct": f"""
[ -z "$SACCT_FORMAT" ] || has -o || {{ echo 9; exit; }}
echo "{ENDED}"
""",
    "sinfo": """
[ -z "$SINFO_FORMAT" ] || has -o || { echo 'cn1 gpu:8'; exit; }
[ -z "$SINFO_PARTITION" ] || exit 0
[ -z "$SLURM_CLUSTERS" ] || echo "CLUSTER: $SLURM_CLUSTERS"
echo 'batch|batch*|up|4:00:00|4|idle|gpu:h100:8|(null)'
""",
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name, body in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nARGS=$*\n{HAS}{body}")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def answers(programs: Path, commands: dict[str, str], variables: dict[str, str]) -> dict[str, Answer]:
    env = {**variables, "PATH": f"{programs}:{os.environ['PATH']}"}
    script = ["sh", "-c", batch_script(commands, "T")]
    done = subprocess.run(script, capture_output=True, text=True, env=env, check=True, timeout=60)
    return batch_answers(done.stdout, commands, "T")


@pytest.mark.parametrize("name", [*VARIABLES, "all"])
def test_no_variable_of_the_user_changes_the_jobs_or_the_partitions(programs: Path, name: str) -> None:
    commands = look_commands(["7", "9"]) | {"nodes": sinfo("-o", SINFO_FORMAT)}
    variables = VARIABLES if name == "all" else {name: VARIABLES[name]}
    without, with_it = answers(programs, commands, {}), answers(programs, commands, variables)
    jobs = read_jobs(with_it, ["7", "9"])
    assert jobs == read_jobs(without, ["7", "9"])
    assert (jobs["7"].starts_at, jobs["9"].state) == (1790000000, "COMPLETED")
    partitions = parse_partitions(with_it["nodes"].text)
    assert [partition.name for partition in partitions] == ["batch"]
    assert partitions == parse_partitions(without["nodes"].text)
