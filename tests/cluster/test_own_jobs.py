"""The user's jobs with where they come from, from what squeue and sacct print."""

from __future__ import annotations

from llmb_tui.cluster.slurm.own_jobs import OwnJob, parse_ended, parse_queued

US = "\x1f"


def test_jobs_in_the_queue() -> None:
    lines = [
        f"12{US}1763712000{US}/lustre/x.sh{US}/lustre{US}nemo_grok1{US}",
        f"13{US}1763712001{US}(null){US}/home/me{US}a {US} strange name{US}",
        f"14{US}N/A{US}x{US}/home/me{US}no moment{US}",
        f"x{US}1763712001{US}x{US}/home/me{US}no number{US}",
        "squeue: error: a line of another shape",
        "",
    ]
    assert parse_queued("\n".join(lines)) == [
        OwnJob("12", "nemo_grok1", 1763712000.0, "/lustre", "/lustre/x.sh"),
        OwnJob("13", f"a {US} strange name", 1763712001.0, "/home/me", "(null)"),
    ]


def test_jobs_that_accounting_knows() -> None:
    lines = [
        f"12{US}1763712000{US}/lustre{US}nemo_grok1",
        f"13{US}Unknown{US}/lustre{US}nemo_grok1",
        f"12.batch{US}1763712000{US}/lustre{US}batch",
    ]
    assert parse_ended("\n".join(lines)) == [OwnJob("12", "nemo_grok1", 1763712000.0, "/lustre")]
