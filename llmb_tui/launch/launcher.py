"""`Launcher`: makes a request run: its checks, its install, its script and its one submission."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import Trouble
from llmb_tui.launch.delivery import Tell
from llmb_tui.launch.install_step import Installs
from llmb_tui.launch.naming import new_run_id
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.procedure import Intent, Render
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.launch.procedures import procedures_for, procedures_on
from llmb_tui.launch.readiness import ClusterEvidence, blockers, refuse
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import submit_once
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.kinds import needs_of
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.preflight.run import run_preflight, target_checks
from llmb_tui.preflight.target import Target
from llmb_tui.request import RunRequest
from llmb_tui.store.journal import Journal


@dataclass
class Launcher:
    """What all requests have in common, held for them. Thread-safe."""

    cluster_of: Callable[[ClusterProfile], Cluster]
    catalog: Catalog
    runs: Runs
    journal: Journal
    policy: Policy
    """What the operator allows."""
    sources: Sources
    """Where installs download from."""
    render: Render
    """Writes batch scripts."""

    def preflight(
        self, target: ClusterProfile | RunRequest, on_progress: Callable[[Preflight], None] | None = None
    ) -> Preflight:
        """Look at a cluster, on its own or with the eyes of a request. Nothing is queued.

        `on_progress` is told what is known so far. Raises Trouble (exit code 1) where it cannot be said what the
        request needs.
        """
        profile = target.profile if isinstance(target, RunRequest) else target
        return run_preflight(self.cluster_of(profile), target_checks(self.target(target)), on_progress)

    def target(self, target: ClusterProfile | RunRequest) -> Target:
        """What a preflight has to check, without asking the cluster. Raises as `preflight` does."""
        if not isinstance(target, RunRequest):
            return Target(needs_of(target, self.sources), self.sources, self._surveys(target))
        chosen = procedure(target.procedure)
        needs, surveys = chosen.needs(target, self.sources), self._surveys(target.profile)
        return Target(needs, self.sources, surveys, chosen.secrets(target), chosen.checks(target))

    def _surveys(self, profile: ClusterProfile) -> tuple[CheckGroup, ...]:
        return tuple(group for facts in procedures_for(profile) for group in procedure(facts.id).survey(self.catalog))

    def early_checks(self, request: RunRequest) -> tuple[Check, ...]:
        """What only the procedures that are not chosen want to know, so that it is known before one of them is."""
        others = [name for name in procedures_on(request.profile) if name != request.procedure]
        groups = [group for name in others for group in procedure(name).checks(replace(request, procedure=name))]
        return run_preflight(self.cluster_of(request.profile), groups).checks

    def installer(self, request: RunRequest) -> Installs:
        """What looks at the install steps of a request on its cluster, and runs them."""
        return procedure(request.procedure).installer(self.cluster_of(request.profile), request, self.sources)

    def evidence(self, request: RunRequest, on_progress: Callable[[Preflight], None] | None = None) -> ClusterEvidence:
        """What a look at its cluster says for a request; as `preflight`, and what is installed."""
        return ClusterEvidence(self.preflight(request, on_progress), self.installer(request).probe())

    def asking_once(self) -> Launcher:
        """For the checks of requests that follow each other at once: what one has asked its cluster the next does not.

        Each is checked for itself, by the same answers as far as it has the same needs.
        """
        return replace(self, cluster_of=cache(lambda profile: self.cluster_of(profile).asking_once()))

    def prepare(self, request: RunRequest, prompter: Prompter | None = None, run_id: str | None = None) -> PreparedRun:
        """What would be submitted of a request. By the direct procedure it takes seconds to render.

        The cluster is asked for its Slurm's version where that matters; `prompter` answers what connecting asks then.
        `run_id`: the id that was assigned to it; None: it gets one.
        Raises `Trouble` (exit code 1) when the plan cannot be launched there in this way.
        """
        cluster = self.cluster_of(request.profile)
        now = time.time()
        intent = Intent(run_id or new_run_id(now), now, self.render, prompter)
        return procedure(request.procedure).prepare(cluster, request, intent)

    def resume(  # noqa: PLR0913, PLR0917 - what `submit` takes, and who is told
        self,
        request: RunRequest,
        run: Run,
        prompter: Prompter | None = None,
        on_check: Callable[[Preflight], None] | None = None,
        on_progress: Tell | None = None,
        evidence: ClusterEvidence | None = None,
    ) -> Run:
        """Submit a stored intent, which `request` was made of again, at most once and exactly as it was agreed to.

        Without `evidence` the cluster is looked at first.

        Raises NotReady as `submit` does, and Trouble (exit code 1) where the same request makes another job by now.
        """
        request = replace(request, dependency=run.dependency)
        cluster = self.cluster_of(request.profile)
        cluster.connect(prompter)
        prepared = self.prepare(request, prompter, run.id)
        if prepared.run.spec != run.spec or prepared.script != self.runs.script(run.id):
            raise Trouble(
                f"Run {run.id} is not sent: its request would be another job by now.",
                "The cluster's profile, the recipe or this program has changed since it was prepared.",
                f"`llmb-tui cancel {run.id}` withdraws it; then submit the same selection again.",
                exit_code=1,
            )
        if evidence is None:
            evidence = self.evidence(request, on_check)
        return self.submit(replace(prepared, run=run), evidence, on_progress)

    def submit(self, prepared: PreparedRun, evidence: ClusterEvidence, on_progress: Tell | None = None) -> Run:
        """Submit a prepared run, at most once. `on_progress` is told what a launch script is doing, a clean line.

        Raises `NotReady` where something stands against it, by what was last seen of its cluster.
        """
        request, run = prepared.request, prepared.run
        refuse(request, blockers(request, self.policy, evidence))
        cluster = self.cluster_of(request.profile)
        return submit_once(cluster, self.runs, self.journal, run, prepared.script, on_progress=on_progress)
