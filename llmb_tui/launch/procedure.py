"""`Procedure`: everything that differs between the ways of launching a run.

A procedure is a folder next to this file, with its words in `facts.py` and its `Procedure` in `procedure.py`;
`launch/procedures.py` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.session import login_node
from llmb_tui.launch.delivery import Delivery
from llmb_tui.launch.install_step import InstallPlan, InstallRunner
from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Problem
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.needs import PUBLIC, ClusterNeeds, Sources
from llmb_tui.preflight.report import Check
from llmb_tui.preflight.secret import SecretNeed
from llmb_tui.request import RunRequest

Render = Callable[[LaunchSpec], str]
"""Renders the batch script; raises LlmbError."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Id, time and helpers for a run that is about to be prepared."""

    run_id: str
    at: float
    """Unix time."""
    render: Render
    prompter: Prompter | None = None
    """Answers the questions of a login; None: a login that asks a question fails."""


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    """A run's script compared with its record."""

    checked: str
    """Description of the compared parts."""
    differences: tuple[str, ...]
    """Names of the parts in which the script differs."""


class Procedure(Protocol):
    """One way of installing, launching and submitting, and base class of each. All methods but `prepare` are pure."""

    script_title: str = ""
    """Title of the submitted text, one or two words; empty if there is none."""
    script_hint: str = ""
    """Explanation of that text for the operator."""
    install_hint: str = "continues on the cluster if you leave"
    """Explanation of the install for the operator."""
    preparing: str = "nemo-run writes the script …"
    """Progress message until the submitted text is ready."""
    submitting: str = ""
    """Progress message during a submission."""

    def refuse(self, recipe: Recipe) -> None:
        """Raise LlmbError (exit code 1) if the procedure can run no request of a recipe."""

    def detail(self, recipe: Recipe) -> str:  # noqa: ARG002 - some procedures name their release
        """Distinction from the other procedures in a few words."""
        return ""

    def preview(self, request: RunRequest) -> LaunchPreview:
        """Describe the launch of a request. Raises LlmbError (exit code 1) if it cannot be determined."""

    def needs(self, request: RunRequest, sources: Sources = PUBLIC) -> ClusterNeeds:
        """Requirements of the install and the run, for the preflight."""

    def survey(self, catalog: Catalog) -> tuple[CheckGroup, ...]:  # noqa: ARG002 - one procedure overrides this
        """Checks of everything that the procedure's own tools have installed on a cluster, for any request."""
        return ()

    def checks(self, request: RunRequest) -> tuple[CheckGroup, ...]:  # noqa: ARG002 - most have none
        """Additional checks of the preflight that only this procedure needs."""
        return ()

    def objections(
        self,
        request: RunRequest,  # noqa: ARG002 - as above
        checks: Sequence[Check],  # noqa: ARG002
        steps: Sequence[StepState],  # noqa: ARG002
    ) -> tuple[Problem, ...] | None:
        """Problems of the procedure that checks or install steps reveal; None if they reveal nothing about it."""
        return None

    def secrets(self, request: RunRequest) -> tuple[SecretNeed, ...]:  # noqa: ARG002 - as above
        """API keys that the request needs or may use."""
        return ()

    def install(self, request: RunRequest) -> InstallPlan:
        """Steps of the install. Raises LlmbError (exit code 1) if they cannot be determined."""

    def installer(self, cluster: Cluster, request: RunRequest, sources: Sources) -> InstallRunner:
        """Installer that runs the steps through the login node. Raises like `install`."""
        from llmb_tui.launch.install import Installer  # noqa: PLC0415 - a list of runs installs nothing

        return Installer(login_node(cluster), request.slurm, self.install(request), sources)

    def prepare(self, cluster: Cluster, request: RunRequest, intent: Intent) -> PreparedRun:
        """Prepare a run for submission; the cluster is asked for facts that only it knows.

        Raises LlmbError (exit code 1) if the plan cannot be launched there with this procedure.
        """

    def delivery(self, run: Run, cluster: Cluster) -> Delivery:
        """Delivery of one of its runs to a cluster. Raises LlmbError (exit code 1) for a cluster of another kind."""

    def compare_script(self, run: Run, script: str) -> ScriptCheck:
        """Compare a submitted script with the spec of its run."""

    def refuse_fetch(self, run: Run) -> None:
        """Raise LlmbError (exit code 1) if the files of its runs cannot be fetched from a login node."""

    def network_folder(self, run: Run) -> str:  # noqa: ARG002 - as above
        """Folder on a login node's file system for NCCL's network lines of a run; empty if it writes none."""
        return ""
