"""Preflight: checks of a cluster before an install or a submission, in less than a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.preflight.access import access_group
from llmb_tui.preflight.check_group import CheckGroup, clean_check
from llmb_tui.preflight.kinds import cluster_checks
from llmb_tui.preflight.report import Preflight
from llmb_tui.preflight.target import Target


def target_checks(target: Target) -> tuple[CheckGroup, ...]:
    """Check groups of a target, in their order."""
    access = access_group(target.keys, target.sources)
    return (*cluster_checks(target.needs), *target.surveys, access, *target.further)


def run_preflight(
    cluster: Cluster, groups: Iterable[CheckGroup], on_progress: Callable[[Preflight], None] | None = None
) -> Preflight:
    """Run the check groups one after the other. They queue and write nothing.

    `on_progress` gets the report after each group. A group is run again if the connection breaks. Raises the errors of
    `Cluster.retry_after_disconnect`; errors of the scheduler are in the checks.
    """
    report = Preflight(())
    for group in groups:
        checks = tuple(map(clean_check, cluster.retry_after_disconnect(partial(group, cluster, report))))
        report = Preflight((*report.checks, *checks))
        if on_progress is not None and checks:
            on_progress(report)
    return report
