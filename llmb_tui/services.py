"""`Services`: what the screens and the verbs may ask for, so that both do the same things in the same way.

Nothing here is logic: it opens the rooms when they are first needed, keeps one `Session` for each cluster and
remembers what was loaded. Its methods read, wait or import heavy rooms: a screen calls them in a thread.
"""

# ruff: noqa: PLC0415 - a heavy room is imported by the method that needs it
from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmb_tui.errors import Trouble

if TYPE_CHECKING:
    from llmb_tui.catalog.catalog import Catalog
    from llmb_tui.cluster.preflight_report import Preflight
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.cluster.prompter import Prompter
    from llmb_tui.cluster.session import Session
    from llmb_tui.launch.install import Installer
    from llmb_tui.launch.run import Run
    from llmb_tui.launch.runs import Runs
    from llmb_tui.plan.plan import Plan
    from llmb_tui.store.journal import Journal
    from llmb_tui.store.paths import Places
    from llmb_tui.watch.monitor import Monitor


@dataclass(frozen=True, slots=True)
class Draft:
    """A run that could be submitted, and the exact batch script it would submit."""

    run: Run
    script: str


class Services:
    """The rooms below, opened when they are first needed. Thread-safe."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.prompter: Prompter | None = None
        """Who answers host-key and password questions; None: nobody, and such a question fails."""
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._catalog: Catalog | None = None

    def catalog(self) -> Catalog:
        """The presets, read once. Raises `PresetProblem`."""
        from llmb_tui.catalog.load import load_presets

        with self._lock:
            if self._catalog is None:
                own = self.places.presets
                self._catalog = load_presets((own,) if own.is_dir() else ())
            return self._catalog

    def profiles(self) -> tuple[ClusterProfile, ...]:
        """The saved clusters."""
        from llmb_tui.cluster.profiles import load_profiles

        return load_profiles(self.places.clusters)

    def profile(self, name: str) -> ClusterProfile:
        """One saved cluster by name. Raises `Trouble` when there is none of that name."""
        for profile in self.profiles():
            if profile.name == name:
                return profile
        raise Trouble(f"No saved cluster is named {name}.", "", "Choose or add one in the Cluster step.", exit_code=1)

    def save_profile(self, profile: ClusterProfile) -> None:
        """Write a cluster's file, and forget the connection that was made with older settings."""
        from llmb_tui.cluster.profiles import save_profile

        save_profile(self.places.clusters, profile)
        self._forget(profile.name)

    def session(self, profile_name: str) -> Session:
        """The one session of a cluster. It connects at its first command, and asks through `prompter`."""
        from llmb_tui.cluster.prompter import Unattended
        from llmb_tui.cluster.session import Session

        profile = self.profile(profile_name)
        with self._lock:
            session = self._sessions.get(profile_name)
            if session is None:
                session = self._sessions[profile_name] = Session(profile, self.prompter or Unattended())
            return session

    def preflight(self, profile_name: str, plan: Plan | None) -> Preflight:
        """Look at a cluster, with the eyes of a plan if there is one. Nothing is queued."""
        from llmb_tui.cluster.preflight import run_preflight

        return run_preflight(self.session(profile_name), self.profile(profile_name), plan)

    def installer(self, profile_name: str, plan: Plan) -> Installer:
        """What looks at the install steps of a plan on a cluster, and runs them."""
        from llmb_tui.launch.install import Installer, install_steps

        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        steps = install_steps(recipe, plan, self.profile(profile_name))
        return Installer(self.session(profile_name), self.profile(profile_name), steps)

    def draft(self, profile_name: str, plan: Plan) -> Draft:
        """Render the batch script of a plan for a cluster. Takes seconds: nemo-run starts in a process of its own."""
        from llmb_tui.launch.render import render
        from llmb_tui.launch.run import Run
        from llmb_tui.launch.spec_of import launch_spec, new_run_id

        now = time.time()
        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        run_id = new_run_id(now)
        spec = launch_spec(recipe, plan, self.profile(profile_name), run_id)
        run = Run(run_id, plan, spec, recipe.rule, recipe.launch.kind, "direct", profile_name, created_at=now)
        return Draft(run, render(spec))

    def submit(self, draft: Draft) -> Run:
        """Submit a drafted run, at most once."""
        from llmb_tui.launch.submit import submit

        return submit(self.session(draft.run.cluster), self.runs(), self.journal(), draft.run, draft.script)

    def runs(self) -> Runs:
        """The remembered runs."""
        from llmb_tui.launch.runs import Runs

        return Runs(self.places)

    def journal(self) -> Journal:
        """The journal of intents."""
        from llmb_tui.store.journal import Journal

        return Journal(self.places.journal)

    def monitor(self, run_id: str) -> Monitor:
        """What watches a run and publishes its `RunState`s."""
        from llmb_tui.watch.monitor import Monitor

        run = self.runs().load(run_id)
        return Monitor(self.session(run.cluster), self.runs(), run)

    def cancel(self, run: Run) -> None:
        """Ask Slurm to cancel every job of a run."""
        from llmb_tui.cluster.slurm import cancel

        session = self.session(run.cluster)
        for job_id in run.job_ids:
            cancel(session, job_id)

    def close(self) -> None:
        """End every connection."""
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            session.close()

    def _forget(self, profile_name: str) -> None:
        with self._lock:
            session = self._sessions.pop(profile_name, None)
        if session is not None:
            session.close()
