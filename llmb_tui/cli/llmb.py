"""`llmb`: an installation of NVIDIA's llmb-run on a cluster: its settings, its workloads, its runs."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import Any

from llmb_tui.cli.output import print_json, print_line, print_table, say
from llmb_tui.cli.runs import print_run
from llmb_tui.cli.user import terminal_prompter, user_services
from llmb_tui.cluster.llmb.install import LlmbInstall, find_installs, request_of, settings_of
from llmb_tui.errors import Trouble
from llmb_tui.language.instants import local_time
from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.launch.llmb.import_run import ImportableRun, import_run, importable_runs, list_importable_runs
from llmb_tui.launch.llmb.run import list_runs
from llmb_tui.launch.llmb.workloads import known_workloads, summary
from llmb_tui.services import Services

_HEADINGS = ("job", "workload", "release", "GPUs", "submitted", "here as", "")


def llmb_verb(arguments: argparse.Namespace) -> int:
    """What NVIDIA's own tools have on a cluster; with `--open` one of its runs is remembered here."""
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
            say(f"Job {arguments.open} of llmb-run is run {run.id} here: `llmb-tui watch {run.id}` follows it.")
        return print_run(services, run.id, as_json=arguments.json)
    survey = find_installs(session, profile.install_dir)
    jobs = list_runs(session, [install.root for install in survey.installs])
    runs = importable_runs(services.catalog, services.runs, profile.name, jobs)
    for trouble in survey.troubles:
        say(f"llmb-tui: passed over: {trouble}")
    if arguments.json:
        installations = [_installation(services, install) for install in survey.installs]
        print_json({"installations": installations, "runs": [_run(one) for one in runs]})
        return 0
    for install in survey.installs:
        print_line(summary(services.catalog, install))
        for name, value in _settings(install).items():
            print_line(f"  {name:14} {value}")
    if not survey.installs:
        say(f"No installation of NVIDIA's llmb-run was found on {arguments.cluster}.")
    if runs:
        print_table(_HEADINGS, [_row(one) for one in runs])
    return 0


def _no_job(cluster: str, job_id: str) -> Trouble:
    return Trouble(
        f"llmb-run has no job {job_id} on {cluster}.",
        "No installation of it that is known there has a file of that job.",
        f"`llmb-tui llmb {cluster}` lists the newest.",
        exit_code=1,
    )


def _settings(install: LlmbInstall) -> dict[str, str]:
    """What its configuration says for the fields of a profile, by their names."""
    request, count = request_of(install)
    return {**settings_of(install), "gpu_request": f"{request}, {count} on a node" if count else request}


def _installation(services: Services, install: LlmbInstall) -> dict[str, Any]:
    """The JSON object of an installation. No value of a variable is in it."""
    request, count = request_of(install)
    names = ("path", "version", "release", "root", "repository", "cluster_name", "gpu_type", "architecture")
    workloads = known_workloads(services.catalog, install)
    environments = {workload.name: list(workload.environment) for workload in install.workloads}
    return {
        **{name: getattr(install, name) for name in names},
        "environment": list(install.environment),
        "settings": {**settings_of(install), "gpu_request": request},
        "gpus_per_node": count or None,
        "images": list(install.images),
        "workloads": [{**asdict(one), "environment": environments[one.name]} for one in workloads],
    }


def _run(one: ImportableRun) -> dict[str, Any]:
    """The JSON object of a run that may be opened."""
    run = one.run
    return {
        "job_id": run.job_id,
        "workload": run.workload,
        **{name: getattr(run, name) or None for name in ("release", "size", "gpu", "dtype", "scale")},
        "submitted_at": run.written_at or None,
        "folder": run.folder,
        "changed": list(run.changed),
        "id": one.imported_id or None,
        "why_not": one.why_not or None,
    }


def _row(one: ImportableRun) -> tuple[str, ...]:
    run = one.run
    at = local_time(run.written_at, time.time()) if run.written_at else "–"
    return (
        run.job_id,
        workload_label(run.workload, run.size, run.dtype).rstrip(),
        run.release or "–",
        gpus_label(run.scale, run.gpu) if run.scale else "–",
        at,
        one.imported_id or "–",
        f"cannot be opened: {one.why_not}" if one.why_not else "",
    )
