"""`llmb`: installations of NVIDIA's llmb-run on a cluster, with their settings, workloads and runs."""

from __future__ import annotations

import argparse
import time

from llmb_tui.answers.llmb import llmb
from llmb_tui.cli.output import print_status, write
from llmb_tui.cli.runs import print_run
from llmb_tui.cli.user import terminal_prompter, user_services
from llmb_tui.cluster.llmb.install import find_installs
from llmb_tui.errors import LlmbError
from llmb_tui.launch.llmb.import_run import import_run, importable_runs, list_importable_runs
from llmb_tui.launch.llmb.run import list_runs


def llmb_verb(arguments: argparse.Namespace) -> int:
    """List what llmb-run has on a cluster; with `--open`, add one of its jobs to the runs here."""
    services = user_services(arguments)
    session = services.clusters.login_node(arguments.cluster)
    profile = session.profile
    session.connect(terminal_prompter())
    if arguments.open is not None:
        runs = list_importable_runs(session, services.catalog, services.runs, arguments.open)
        if not runs:
            raise _no_job(profile.name, arguments.open)
        run = import_run(services.catalog, services.runs, profile.name, runs[0])
        if not arguments.json:
            print_status(
                f"Job {arguments.open} of llmb-run is run {run.id} here: `llmb-tui watch {run.id}` follows it."
            )
        return print_run(services, run.id, as_json=arguments.json)
    survey = find_installs(session, profile.install_dir)
    jobs = list_runs(session, [install.root for install in survey.installs])
    runs = importable_runs(services.catalog, services.runs, profile.name, jobs)
    for error in survey.errors:
        print_status(f"llmb-tui: ignored: {error}")
    write(llmb(services.catalog, profile.name, survey.installs, runs, time.time()), arguments)
    return 0


def _no_job(cluster: str, job_id: str) -> LlmbError:
    return LlmbError(
        f"llmb-run has no job {job_id} on {cluster}.",
        "None of its known installations there has a file of that job.",
        f"`llmb-tui llmb {cluster}` lists the newest jobs.",
        exit_code=1,
    )
