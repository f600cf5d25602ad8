"""`llmb`: the installations of NVIDIA's llmb-run on a cluster, and the runs that llmb-run started there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Fact, Facts, Grid, Section, Text
from llmb_tui.answers.llmb_runs import llmb_run_columns, runs_summary
from llmb_tui.answers.table import Table
from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.llmb.install import LlmbInstall, request_of, settings_of
from llmb_tui.launch.llmb.import_run import ImportableRun
from llmb_tui.launch.llmb.workloads import known_workloads, summary


def llmb(
    catalog: Catalog, cluster: str, installs: Sequence[LlmbInstall], runs: Sequence[ImportableRun], now: float
) -> Answer:
    """The installations of llmb-run on a cluster and its newest runs; `now` is Unix time."""
    return Answer(
        f"llmb-run on {cluster}",
        lambda: _blocks(catalog, cluster, installs, runs, now),
        lambda: {
            "installations": [_install(catalog, install) for install in installs],
            "runs": [*map(_document, runs)],
        },
    )


def _blocks(
    catalog: Catalog, cluster: str, installs: Sequence[LlmbInstall], runs: Sequence[ImportableRun], now: float
) -> list[Block]:
    blocks: list[Block] = [
        Section(summary(catalog, install), (Facts(tuple(Fact(*setting) for setting in _settings(install).items())),))
        for install in installs
    ]
    if not installs:
        blocks.append(Text(f"No installation of NVIDIA's llmb-run was found on {cluster}."))
    if runs:
        blocks.append(Grid(f"Runs on {runs_summary(cluster, runs)}.", Table.by(llmb_run_columns(now), runs)))
    return blocks


def _settings(install: LlmbInstall) -> dict[str, str]:
    """Settings that are fields of a profile, by the names of the fields."""
    request, count = request_of(install)
    return {**settings_of(install), "gpu_request": f"{request}, {count} per node" if count else request}


def _install(catalog: Catalog, install: LlmbInstall) -> dict[str, Any]:
    """JSON object of an installation. It contains names of variables and none of their values."""
    request, count = request_of(install)
    names = ("path", "version", "release", "root", "repository", "cluster_name", "gpu_type", "architecture")
    environments = {workload.name: list(workload.environment) for workload in install.workloads}
    return {
        **{name: getattr(install, name) for name in names},
        "environment": list(install.environment),
        "settings": {**settings_of(install), "gpu_request": request},
        "gpus_per_node": count or None,
        "images": list(install.images),
        "workloads": [
            {**asdict(workload), "environment": environments[workload.name]}
            for workload in known_workloads(catalog, install)
        ],
    }


def _document(importable: ImportableRun) -> dict[str, Any]:
    """JSON object of a run."""
    run = importable.run
    return {
        "job_id": run.job_id,
        "workload": run.workload,
        **{name: getattr(run, name) or None for name in ("release", "size", "gpu", "dtype", "scale")},
        "submitted_at": run.written_at or None,
        "folder": run.folder,
        "changed": list(run.changed),
        "id": importable.imported_id or None,
        "why_not": importable.why_not or None,
    }
