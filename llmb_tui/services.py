"""`Services`: what the screens and the verbs may ask for, so that both do the same things in the same way.

Nothing here is logic: it opens the rooms when they are first needed, keeps one `Session` for each cluster and
remembers what was loaded. Its methods read, wait or import heavy rooms: a screen calls them in a thread.
"""

# ruff: noqa: PLC0415 - a heavy room is imported by the method that needs it
from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from llmb_tui.cluster.preflight.needs import Sources
from llmb_tui.errors import Trouble
from llmb_tui.text import clean_line

if TYPE_CHECKING:
    from llmb_tui.catalog.catalog import Catalog
    from llmb_tui.cluster.health import LinkHealth
    from llmb_tui.cluster.llmb.find import LlmbFound
    from llmb_tui.cluster.offers import Offers
    from llmb_tui.cluster.preflight.report import Check, Preflight
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.cluster.prompter import Prompter
    from llmb_tui.cluster.session import Session
    from llmb_tui.launch.install import Installer
    from llmb_tui.launch.llmb.adopt import Listed
    from llmb_tui.launch.published.command import PublishedCommand
    from llmb_tui.launch.run import Run
    from llmb_tui.launch.runs import Runs
    from llmb_tui.launch.secret import SecretId, SecretNeed
    from llmb_tui.launch.secrets import SecretState, SecretTest
    from llmb_tui.plan.calibration import OwnResult
    from llmb_tui.plan.plan import Plan
    from llmb_tui.plan.selection import Procedure
    from llmb_tui.store.journal import Journal
    from llmb_tui.store.paths import Places
    from llmb_tui.watch.lookout import Lookout
    from llmb_tui.watch.monitor import Monitor
    from llmb_tui.watch.own_runs import OwnRuns


@dataclass(frozen=True, slots=True)
class Draft:
    """A run that could be submitted, and exactly what would be: the batch script, or the command that launches it."""

    run: Run
    script: str


class Services:
    """The rooms below, opened when they are first needed. Thread-safe."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.prompter: Prompter | None = None
        """Who answers host-key and password questions; None: nobody, and such a question fails."""
        self.on_broken_file: Callable[[Trouble], None] | None = None
        """Told, once each, of the user's own presets and profiles that cannot be read, and are then passed over;
        None: they are raised."""
        self.sources = Sources()
        """Where installs download from."""
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._sessions: dict[tuple[object, ...], Session] = {}
        self._lookouts: dict[Session, Lookout] = {}
        self._attended = True
        self._catalog: Catalog | None = None
        self._local: ClusterProfile | None = None
        self._own_runs: OwnRuns | None = None

    def catalog(self) -> Catalog:
        """The presets, read once. Raises `PresetProblem` unless `on_broken_file` hears of it."""
        from llmb_tui.catalog.load import load_presets

        with self._lock:
            if self._catalog is None:
                own = self.places.presets
                self._catalog = load_presets((own,) if own.is_dir() else (), self.on_broken_file and self._tell)
            return self._catalog

    def profiles(self) -> tuple[ClusterProfile, ...]:
        """The saved clusters. Raises `ProfileProblem` unless `on_broken_file` hears of it."""
        from llmb_tui.cluster.profiles import load_profiles

        return load_profiles(self.places.clusters, self.on_broken_file and self._tell)

    def _tell(self, problem: Trouble) -> None:
        if self.on_broken_file is not None and problem.what not in self._told:
            self._told.add(problem.what)
            self.on_broken_file(problem)

    def profile(self, name: str) -> ClusterProfile:
        """One saved cluster by name; `local`, unless one is saved as that, is this machine as a login node.

        Raises `Trouble` when there is none of that name, its file is broken, or this machine is no login node.
        """
        from llmb_tui.cluster.local_profile import NAME
        from llmb_tui.cluster.profiles import load_profile, profile_files

        for path in profile_files(self.places.clusters):
            if path.stem == name:
                return load_profile(path)
        if name == NAME:
            return self._local_profile()
        raise Trouble(
            f"No saved cluster is named {clean_line(name)}.",
            "",
            "Choose or add one in the Cluster step; `llmb-tui clusters` lists them.",
            exit_code=1,
        )

    def _local_profile(self) -> ClusterProfile:
        from llmb_tui.cluster.local_profile import local_profile, unfilled_local_profile

        if self._local is None:
            self._local = local_profile(self.offers(unfilled_local_profile()))
        return self._local

    def save_profile(self, profile: ClusterProfile) -> None:
        """Write a cluster's file. Its connection stays unless it would now go elsewhere."""
        from llmb_tui.cluster.profiles import save_profile

        before = {known.route for known in self.profiles()}
        save_profile(self.places.clusters, profile)
        for route in before - {known.route for known in self.profiles()}:
            self._forget(route)

    def offers(self, profile: ClusterProfile) -> Offers:
        """What a cluster has to choose from. The profile need not be saved; only how to connect must be in it."""
        from llmb_tui.cluster.offers import read_offers

        return read_offers(self._session(profile))

    def session(self, profile_name: str) -> Session:
        """The one session of a cluster. It connects at its first command, and asks through `prompter`."""
        return self._session(self.profile(profile_name))

    def health(self, profile: ClusterProfile) -> LinkHealth | None:
        """How the connection to a cluster is; None when nobody has asked for one yet. Never waits."""
        session = self._sessions.get(profile.route)
        return session.health if session is not None else None

    def _session(self, profile: ClusterProfile) -> Session:
        from llmb_tui.cluster.prompter import Unattended
        from llmb_tui.cluster.session import Session

        with self._lock:
            session = self._sessions.get(profile.route)
            if session is None:
                session = self._sessions[profile.route] = Session(profile, self.prompter or Unattended())
            return session

    def preflight(
        self,
        profile_name: str,
        plan: Plan | None,
        on_progress: Callable[[Preflight], None] | None = None,
        procedure: Procedure = "direct",
    ) -> Preflight:
        """Look at a cluster, with the eyes of a plan and a procedure if there is a plan. Nothing is queued.

        `on_progress` is told what is known so far.
        """
        from llmb_tui.cluster.preflight.needs import Needs
        from llmb_tui.cluster.preflight.run import run_preflight
        from llmb_tui.launch.access import with_access
        from llmb_tui.launch.llmb.workloads import with_llmb
        from llmb_tui.launch.needs import needs_of
        from llmb_tui.launch.published.commits import commits_step, with_commits

        session, profile = self.session(profile_name), self.profile(profile_name)
        if plan is None:
            report = run_preflight(session, profile, None, on_progress, Needs(sources=self.sources))
            return with_llmb(session, profile, self.catalog(), report, on_progress)
        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        needs = replace(needs_of(recipe, plan, profile, procedure), sources=self.sources)
        report = run_preflight(session, profile, plan, on_progress, needs)
        report = with_llmb(session, profile, self.catalog(), report, on_progress)
        report = with_access(session, report, self.secrets_needed(plan, procedure), self.sources, on_progress)
        step = commits_step(recipe, plan, profile) if procedure == "recipe" else None
        return with_commits(session, report, step, on_progress)

    def commits(self, profile_name: str, plan: Plan) -> Check | None:
        """Whether the commits that a plan's setup script takes are public; None where it takes none by their ids."""
        from llmb_tui.launch.published.commits import commits_step, look_for_commits

        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        step = commits_step(recipe, plan, self.profile(profile_name))
        return look_for_commits(self.session(profile_name), step) if step is not None else None

    def installer(self, profile_name: str, plan: Plan, procedure: Procedure = "direct") -> Installer:
        """What looks at the install steps of a plan and a procedure on a cluster, and runs them."""
        from llmb_tui.launch.install import Installer, install_steps

        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        steps = install_steps(recipe, plan, self.profile(profile_name), procedure)
        return Installer(self.session(profile_name), self.profile(profile_name), steps, self.sources)

    def secrets_needed(self, plan: Plan, procedure: Procedure = "direct") -> tuple[SecretNeed, ...]:
        """The keys that matter for a plan and a procedure. Takes no connection."""
        from llmb_tui.launch.secret import needed_secrets

        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        return needed_secrets(recipe, plan, procedure)

    def secret_states(self, profile_name: str) -> tuple[SecretState, ...]:
        """Which keys are on a cluster, and which in this computer's keyring."""
        from llmb_tui.launch.secrets import secret_states

        return secret_states(self.session(profile_name), keyring=True)

    def give_secret(self, profile_name: str, secret_id: str, value: str | None, *, keep: bool = False) -> str:
        """Put a key on a cluster: the given one, or the one in the keyring. A sentence says where it is now."""
        from llmb_tui.launch.secrets import give_secret

        return give_secret(self.session(profile_name), secret_id, value, keep=keep)

    def test_secret(self, profile_name: str, need: SecretNeed, value: str | None = None) -> SecretTest:
        """Ask from a cluster whether a key opens what it has to: the given one, or the one that lies there."""
        from llmb_tui.launch.secret import secret_of
        from llmb_tui.launch.secrets import try_secret

        secret = secret_of(need.id, value) if value is not None else None
        return try_secret(self.session(profile_name), need, secret, self.sources)

    def forget_secret(self, profile_name: str, secret_id: SecretId) -> str:
        """Remove a key from a cluster and from the keyring. A sentence says so."""
        from llmb_tui.launch.secrets import forget_secret

        return forget_secret(self.session(profile_name), secret_id)

    def draft(self, profile_name: str, plan: Plan, procedure: Procedure = "direct") -> Draft:
        """What would be submitted of a plan to a cluster. By the direct procedure it takes seconds to render.

        The cluster is asked for its Slurm's version where that matters. Raises `Trouble` (exit code 1) when the plan
        cannot be launched there in this way.
        """
        from llmb_tui.launch.draft import draft_run

        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        run, script = draft_run(self.session(profile_name), self.profile(profile_name), recipe, plan, procedure)
        return Draft(run, script)

    def published(self, profile_name: str, plan: Plan) -> PublishedCommand:
        """What starts a plan by the published procedure on a cluster. Takes no connection.

        Raises `Trouble` where the recipe has no such procedure, or a value cannot be handed over.
        """
        from llmb_tui.launch.published.command import published_command

        recipe = self.catalog().recipe(plan.selection.workload, plan.selection.release)
        return published_command(recipe, plan, self.profile(profile_name))

    def submit(self, draft: Draft, on_progress: Callable[[str], None] | None = None) -> Run:
        """Submit a drafted run, at most once. `on_progress` is told what a launch script is doing, one clean line."""
        from llmb_tui.launch.submit import submit

        session, run = self.session(draft.run.cluster), draft.run
        return submit(session, self.runs(), self.journal(), run, draft.script, on_progress=on_progress)

    def reconcile(self, run_id: str) -> Run:
        """Ask the cluster what became of a run that is `unknown`; others stay as they are.

        Raises `Trouble` when there is no such run, or the cluster cannot be asked.
        """
        from llmb_tui.launch.submit import reconcile

        run = self.runs().load(run_id)
        return reconcile(self.session(run.cluster), self.runs(), self.journal(), run)

    def estimated_start(self, draft: Draft) -> float:
        """When Slurm would start a drafted run, Unix time; nothing is queued. Raises `SlurmTrouble` if it refuses."""
        from llmb_tui.cluster.slurm.client import estimated_start

        return estimated_start(self.session(draft.run.cluster), draft.script)

    def runs(self) -> Runs:
        """The remembered runs."""
        from llmb_tui.launch.runs import Runs

        return Runs(self.places)

    def llmb(self, profile: ClusterProfile) -> LlmbFound:
        """What NVIDIA's own tools have on a cluster. The profile need not be saved."""
        from llmb_tui.cluster.llmb.find import find_installs

        return find_installs(self._session(profile), profile.install_dir)

    def llmb_runs(self, profile_name: str) -> tuple[Listed, ...]:
        """The newest runs that NVIDIA's llmb-run started on a cluster."""
        from llmb_tui.launch.llmb.adopt import listed
        from llmb_tui.launch.llmb.run import list_runs

        session = self.session(profile_name)
        roots = [install.root for install in self.llmb(self.profile(profile_name)).installs]
        return listed(self.catalog(), self.runs(), profile_name, list_runs(session, roots))

    def adopt(self, profile_name: str, one: Listed) -> Run:
        """Remember a run that llmb-run started on a cluster, so that it is watched as ours are. Takes no connection."""
        from llmb_tui.launch.llmb.adopt import adopt

        return adopt(self.catalog(), self.runs(), profile_name, one)

    def journal(self) -> Journal:
        """The journal of intents."""
        from llmb_tui.store.journal import Journal

        return Journal(self.places.journal)

    def own_results(self, profile_name: str) -> tuple[OwnResult, ...]:
        """The benchmarks that have ended on a cluster, by what this machine holds of them. Takes no connection.

        The first call reads their logs; later ones read what has changed since.
        """
        from llmb_tui.watch.own_runs import OwnRuns

        catalog = self.catalog()
        with self._lock:
            if self._own_runs is None:
                self._own_runs = OwnRuns(self.runs(), catalog)
        return self._own_runs.results(profile_name)

    def monitor(self, run_id: str) -> Monitor:
        """What watches a run and publishes its `RunState`s."""
        from llmb_tui.watch.monitor import Monitor

        run = self.runs().load(run_id)
        return Monitor(self.session(run.cluster), self.runs(), run, self.lookout(run.cluster))

    def lookout(self, profile_name: str) -> Lookout:
        """What looks at Slurm for all that follow jobs of a cluster."""
        from llmb_tui.watch.lookout import Lookout

        session = self.session(profile_name)
        with self._lock:
            lookout = self._lookouts.get(session)
            if lookout is None:
                lookout = self._lookouts[session] = Lookout(session)
                lookout.attend(self._attended)
            return lookout

    def attend(self, attended: bool) -> None:
        """Whether somebody is there to see what the clusters say; while nobody is, they are asked less often."""
        with self._lock:
            self._attended = attended
            lookouts = list(self._lookouts.values())
        for lookout in lookouts:
            lookout.attend(attended)

    def cancel(self, run: Run) -> None:
        """Ask Slurm to cancel every job of a run."""
        from llmb_tui.cluster.slurm.client import cancel

        session = self.session(run.cluster)
        for job_id in run.job_ids:
            cancel(session, job_id)
        self.lookout(run.cluster).look_soon()

    def close(self) -> None:
        """End every connection."""
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            self._end(session)

    def _forget(self, route: tuple[object, ...]) -> None:
        with self._lock:
            session = self._sessions.pop(route, None)
        if session is not None:
            self._end(session)

    def _end(self, session: Session) -> None:
        with self._lock:
            lookout = self._lookouts.pop(session, None)
        session.close()
        if lookout is not None:
            lookout.close()
