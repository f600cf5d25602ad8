"""The user's jobs and their origins, from the output of squeue and sacct."""

from __future__ import annotations

from llmb_tui.cluster.job import OwnJob
from llmb_tui.cluster.slurm.client import OWN_ENDED, OWN_QUEUED, parse_own_jobs

US = "\x1f"


def test_jobs_in_the_queue() -> None:
    lines = [
        f"12{US}1763712000{US}/lustre{US}/lustre/x.sh{US}nemo_grok1{US}",
        f"13{US}1763712001{US}/home/me{US}(null){US}a {US} strange name{US}",
        f"14{US}N/A{US}/home/me{US}x{US}no moment{US}",
        f"x{US}1763712001{US}/home/me{US}x{US}no number{US}",
        "squeue: error: a line of another shape",
        "",
    ]
    assert parse_own_jobs("\n".join(lines), OWN_QUEUED) == [
        OwnJob("12", "nemo_grok1", 1763712000.0, "/lustre", "/lustre/x.sh"),
        OwnJob("13", f"a {US} strange name", 1763712001.0, "/home/me", "(null)"),
    ]


def test_ended_jobs_are_parsed_from_sacct() -> None:
    lines = [
        f"12{US}1763712000{US}/lustre{US}nemo_grok1",
        f"13{US}Unknown{US}/lustre{US}nemo_grok1",
        f"12.batch{US}1763712000{US}/lustre{US}batch",
    ]
    assert parse_own_jobs("\n".join(lines), OWN_ENDED) == [OwnJob("12", "nemo_grok1", 1763712000.0, "/lustre")]
