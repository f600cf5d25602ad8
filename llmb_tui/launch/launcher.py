"""`Launcher`: check, install, prepare and submit a request."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.launch.delivery import OnStatus
from llmb_tui.launch.install_step import InstallRunner
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
    """The services that all requests share. Thread-safe."""

    cluster_of: Callable[[ClusterProfile], Cluster]
    catalog: Catalog
    runs: Runs
    journal: Journal
    policy: Policy
    """Limits that the operator has set."""
    sources: Sources
    """Registries and repositories from which installs download."""
    render: Render
    """Writer of batch scripts."""

    def preflight(
        self, target: ClusterProfile | RunRequest, on_progress: Callable[[Preflight], None] | None = None
    ) -> Preflight:
        """Check a cluster, either in general or for one request. Nothing is queued.

        `on_progress` receives the checks that have finished so far. Raises LlmbError (exit code 1) if the needs of the
        request cannot be determined.
        """
        profile = target.profile if isinstance(target, RunRequest) else target
        return run_preflight(self.cluster_of(profile), target_checks(self.target(target)), on_progress)

    def target(self, target: ClusterProfile | RunRequest) -> Target:
        """Everything that a preflight checks, without asking the cluster. Raises like `preflight`."""
        if not isinstance(target, RunRequest):
            return Target(needs_of(target, self.sources), self.sources, self._surveys(target))
        chosen = procedure(target.procedure)
        needs, surveys = chosen.needs(target, self.sources), self._surveys(target.profile)
        return Target(needs, self.sources, surveys, chosen.secrets(target), chosen.checks(target))

    def _surveys(self, profile: ClusterProfile) -> tuple[CheckGroup, ...]:
        return tuple(group for facts in procedures_for(profile) for group in procedure(facts.id).survey(self.catalog))

    def early_checks(self, request: RunRequest) -> tuple[Check, ...]:
        """Checks that only the other procedures need, so that their results are known before one is chosen."""
        others = [name for name in procedures_on(request.profile) if name != request.procedure]
        groups = [group for name in others for group in procedure(name).checks(replace(request, procedure=name))]
        return run_preflight(self.cluster_of(request.profile), groups).checks

    def installer(self, request: RunRequest) -> InstallRunner:
        """The installer for a request on its cluster."""
        return procedure(request.procedure).installer(self.cluster_of(request.profile), request, self.sources)

    def evidence(self, request: RunRequest, on_progress: Callable[[Preflight], None] | None = None) -> ClusterEvidence:
        """Results of the preflight and of the install check for a request. Raises as both do."""
        return ClusterEvidence(self.preflight(request, on_progress), self.installer(request).probe())

    def with_answer_cache(self) -> Launcher:
        """A launcher for consecutive checks of several requests: it asks each cluster each question only once.

        Every request is checked separately; requests with equal needs share the cluster's answers.
        """
        return replace(self, cluster_of=cache(lambda profile: self.cluster_of(profile).with_answer_cache()))

    def prepare(self, request: RunRequest, prompter: Prompter | None = None, run_id: str | None = None) -> PreparedRun:
        """Prepare a request for submission. Our script takes seconds to render its script.

        The cluster is asked for its Slurm version if that matters; `prompter` answers the questions of that login.
        `run_id`: an id that was assigned before; None: a new one.
        Raises `LlmbError` (exit code 1) if the plan cannot be launched there with this procedure.
        """
        cluster = self.cluster_of(request.profile)
        now = time.time()
        intent = Intent(run_id or new_run_id(now), now, self.render, prompter)
        return procedure(request.procedure).prepare(cluster, request, intent)

    def resume(  # noqa: PLR0913, PLR0917 - the arguments of `submit`, and two callbacks
        self,
        request: RunRequest,
        run: Run,
        prompter: Prompter | None = None,
        on_check: Callable[[Preflight], None] | None = None,
        on_progress: OnStatus | None = None,
        evidence: ClusterEvidence | None = None,
    ) -> Run:
        """Submit a stored intent at most once, exactly as it was confirmed; `request` was made from it again.

        Without `evidence`, the cluster is checked first.

        Raises NotReadyError like `submit`, and LlmbError (exit code 1) if the same request now results in another job.
        """
        request = replace(request, dependency=run.dependency)
        cluster = self.cluster_of(request.profile)
        cluster.connect(prompter)
        prepared = self.prepare(request, prompter, run.id)
        spec = prepared.run.spec
        if spec is None or not spec.is_same_job(run.spec) or prepared.script != self.runs.script(run.id):
            raise LlmbError(
                f"Run {run.id} was not submitted: its request would now result in a different job.",
                "The cluster's profile, the recipe or this program has changed since the run was prepared.",
                f"`llmb-tui cancel {run.id}` withdraws it; then submit the same selection again.",
                exit_code=1,
            )
        if evidence is None:
            evidence = self.evidence(request, on_check)
        return self.submit(replace(prepared, run=run), evidence, on_progress)

    def submit(self, prepared: PreparedRun, evidence: ClusterEvidence, on_progress: OnStatus | None = None) -> Run:
        """Submit a prepared run, at most once. `on_progress` receives the launch script's progress, a clean line each.

        Raises `NotReadyError` if `evidence`, the last known state of its cluster, has anything against it.
        """
        request, run = prepared.request, prepared.run
        refuse(request, blockers(request, self.policy, evidence))
        cluster = self.cluster_of(request.profile)
        return submit_once(cluster, self.runs, self.journal, run, prepared.script, on_progress=on_progress)
