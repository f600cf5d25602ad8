"""`Procedure`: everything in which ways of starting a run differ.

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
from llmb_tui.launch.install_step import InstallPlan, Installs
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
"""Writes the batch script; raises Trouble."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A run that is to be prepared."""

    run_id: str
    at: float
    """Unix time."""
    render: Render
    prompter: Prompter | None = None
    """Who answers what connecting asks; None: nobody."""


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    """A run's script compared with its record."""

    checked: str
    """What was compared, in words."""
    differences: tuple[str, ...]
    """Names of the parts in which the script differs."""


class Procedure(Protocol):
    """One way of installing, starting and submitting, and the base of each. All but `prepare` is pure."""

    script_title: str = ""
    """What is submitted, in a word or two; empty where nothing is."""
    script_hint: str = ""
    """What that is to the operator."""
    install_hint: str = "runs on the cluster by itself"
    """What an install is to the operator."""
    preparing: str = "nemo-run writes the script …"
    """What is done until it is there to be shown."""
    submitting: str = ""
    """What is done while a run is on its way."""

    def refuse(self, recipe: Recipe) -> None:
        """Raise Trouble (exit code 1) where a recipe cannot be run so at all."""

    def detail(self, recipe: Recipe) -> str:  # noqa: ARG002 - only some name their release
        """What distinguishes the procedure from the others, in a few words."""
        return ""

    def preview(self, request: RunRequest) -> LaunchPreview:
        """How it would be started. Raises Trouble (exit code 1) where that cannot be said."""

    def needs(self, request: RunRequest, sources: Sources = PUBLIC) -> ClusterNeeds:
        """What installing and running take from the cluster, for the preflight."""

    def survey(self, catalog: Catalog) -> tuple[CheckGroup, ...]:  # noqa: ARG002 - only one has such
        """Checks of what the procedure's own tools have installed on a cluster, whatever is asked for there."""
        return ()

    def checks(self, request: RunRequest) -> tuple[CheckGroup, ...]:  # noqa: ARG002 - most have none
        """Further checks of the preflight, which only this procedure wants."""
        return ()

    def objections(
        self,
        request: RunRequest,  # noqa: ARG002 - as above
        checks: Sequence[Check],  # noqa: ARG002
        steps: Sequence[StepState],  # noqa: ARG002
    ) -> tuple[Problem, ...] | None:
        """What checks or install steps have shown to stand against the procedure; None if they show nothing of it."""
        return None

    def secrets(self, request: RunRequest) -> tuple[SecretNeed, ...]:  # noqa: ARG002 - as above
        """The keys that matter."""
        return ()

    def install(self, request: RunRequest) -> InstallPlan:
        """What has to be on the cluster first. Raises Trouble (exit code 1) where that cannot be said."""

    def installer(self, cluster: Cluster, request: RunRequest, sources: Sources) -> Installs:
        """What sees to that, through the login node. Raises as `install` does."""
        from llmb_tui.launch.install import Installer  # noqa: PLC0415 - a list of runs installs nothing

        return Installer(login_node(cluster), request.slurm, self.install(request), sources)

    def prepare(self, cluster: Cluster, request: RunRequest, intent: Intent) -> PreparedRun:
        """What would be submitted; the cluster is asked for what only it can say.

        Raises Trouble (exit code 1) when the plan cannot be launched there in this way.
        """

    def delivery(self, run: Run, cluster: Cluster) -> Delivery:
        """The way of one of its runs to a cluster. Raises Trouble (exit code 1) for a cluster of another kind."""

    def compare_script(self, run: Run, script: str) -> ScriptCheck:
        """What was submitted, compared with the spec of one of its runs."""

    def refuse_fetch(self, run: Run) -> None:
        """Raise Trouble (exit code 1) if no login node has the files of its runs."""

    def network_folder(self, run: Run) -> str:  # noqa: ARG002 - as above
        """Folder on a login node's file system where a run writes NCCL's network lines; empty if it writes none."""
        return ""
