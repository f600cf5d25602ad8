"""`Installer`: check the install steps of a plan on its cluster, and run the missing ones.

A step runs detached on the cluster or as a job (`remote/start.sh`, `remote/step.sh`), so that it survives a broken
connection and a later call finds it. Each call reads from the cluster which steps are done, running or failed;
nothing about them is stored here.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable

from llmb_tui.cluster.failures import DeadlineError, DisconnectedError, NoAnswerError, UnreachableError
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import duration
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean
from llmb_tui.launch.install_step import InstallPlan, InstallStep
from llmb_tui.launch.step_state import StepProbe, StepState, read_probes, state_of, step_rate
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.registry import ask_registry

_SOURCES = Sources()
LOOK_EVERY_S = 1.0
ASK_SLURM_EVERY_S = 10.0
"""Intervals of looks at the steps, and of queries to Slurm about their jobs, seconds."""
STARTS_WITHIN_S = 30.0
"""Time within which a started step must be seen, seconds."""
# A file that a job wrote on another node appears late: NFS caches for a minute that it did not exist.
_JOB_SEEN_WITHIN_S = 90.0
_START_DEADLINE_S = 60.0
LINK_PATIENCE_S = 300.0
"""Time for which a lost link or an unanswered start is tried again, seconds."""
HELD_PATIENCE_S = 3600.0
"""Time for which a step of another user is awaited while it shows no progress, seconds."""
_LONGEST_JOB_NAME = 200
_CANNOT_BE_USED = 3
"""Exit code of start.sh."""
# Number of starts of a step that is killed from outside, in one call of `run`.
_MOST_STARTS = 3


class Installer:
    """The steps of one plan on one cluster, in order."""

    def __init__(self, session: Session, profile: SlurmProfile, plan: InstallPlan, sources: Sources = _SOURCES) -> None:
        self._session = session
        self._registry = sources.registry
        self._umask = profile.umask
        self._install = profile.install_dir.rstrip("/")
        self._steps = plan
        self._paces = {step.id: step_rate() for step in plan}
        self._totals: dict[str, int | None] = {}
        self._asked_slurm_at: float | None = None
        self._awaited: tuple[StepProbe | None, float] = (None, 0.0)
        """The last probe of the step that is awaited, and the time since which it is the same."""

    def probe(self) -> tuple[StepState, ...]:
        """Current state of every step. For pending downloads the registry is asked for their size, once.

        Raises LlmbError if the cluster cannot be queried.
        """
        probes = self._session.retry_after_disconnect(lambda: self._probes(ask_slurm=True))
        self._session.retry_after_disconnect(lambda: self._ask_sizes(probes))
        return self._states(probes)

    def run(
        self,
        on_change: Callable[[tuple[StepState, ...]], None],
        stop: threading.Event,
        on_silence: Callable[[LlmbError], None] = lambda _: None,
    ) -> tuple[StepState, ...]:
        """Run the missing steps one after the other; return when all are done, one has failed, or `stop` is set.

        A running step is awaited, a step that failed earlier is tried once more, a step that was killed from outside
        is started again, and a step that runs when `stop` is set continues on the cluster. `on_change` is called from
        this thread, `on_silence` each time the cluster does not answer. Raises LlmbError if a step does not start or is
        killed repeatedly, if another user's step shows no progress for an hour, and if the cluster does not answer for
        five minutes; `ReadOnlyError` for a read-only cluster.
        """
        self._session.require_changes()
        starts: dict[str, int] = {}
        first_tried: dict[str, float] = {}
        alive_at = 0.0
        last_states: tuple[StepState, ...] = ()
        while True:
            probes = self._probes_with_retries(stop, on_silence)
            states = self._states(probes)
            if states != last_states:
                on_change(states)
                last_states = states
            open_steps = [pair for pair in zip(self._steps, probes, strict=True) if pair[1].state != "done"]
            if not open_steps or stop.is_set():
                return states
            step, now = open_steps[0]
            if now.state in ("running", "waiting"):
                starts.setdefault(step.id, 1)
                alive_at = time.monotonic()
                self._require_progress(step, now)
            elif now.state in ("failed", "gone") and step.id in starts:
                return states
            elif now.state == "missing" and step.id in starts:
                patience_s = _JOB_SEEN_WITHIN_S if step.in_job else STARTS_WITHIN_S
                if time.monotonic() > alive_at + patience_s:
                    raise _not_started(step, patience_s)
            elif starts.get(step.id, 0) >= _MOST_STARTS:
                raise _killed_repeatedly(step)
            else:
                silence = self._start(step)
                if silence is None:
                    starts[step.id] = starts.get(step.id, 0) + 1
                    alive_at = time.monotonic()
                else:
                    on_silence(silence)
                    if time.monotonic() > first_tried.setdefault(step.id, time.monotonic()) + LINK_PATIENCE_S:
                        raise silence
            stop.wait(LOOK_EVERY_S)

    def _require_progress(self, step: InstallStep, probe: StepProbe) -> None:
        """Raise LlmbError if another user has held the step's lock for an hour without progress."""
        last, since = self._awaited
        if probe != last:
            self._awaited = (probe, time.monotonic())
        elif probe.holder and time.monotonic() > since + HELD_PATIENCE_S:
            lock = clean(f"{self._step_folder(step)}/lock")
            raise LlmbError(
                f"{step.title}: {probe.holder} runs this step, and it shows no progress.",
                f"Its lock, {lock}, is held, but its log and files have not changed for {duration(HELD_PATIENCE_S)}.",
                "Ask this user. If the step does not run any more, remove that directory and install again.",
            )

    def _probes(self, *, ask_slurm: bool) -> list[StepProbe]:
        ask = "ask" if ask_slurm else "no"
        calls = [
            shell_join(["look", ask, folder, _job_name(folder, step), step.growing, *step.results])
            for step, folder in ((step, self._step_folder(step)) for step in self._steps)
        ]
        # The echo ends a line that the login shell may have begun.
        script = "\n".join([remote_text("lock.sh", "there.sh", "look.sh"), "echo", *calls, "exit 0\n"])
        result = self._session.run(["sh", "-s"], stdin=script.encode(), deadline_s=_START_DEADLINE_S)
        if result.exit_code:
            what, words = "The install steps could not be checked.", server_words(result.stderr)
            if not words:  # killed from outside, for example on a login node that is short of memory
                why, fix = "The cluster killed the command that checks them.", "Try again; started steps continue."
                raise NoAnswerError(what, why, fix)
            raise LlmbError(what, words)
        return read_probes(result.stdout, len(self._steps))

    def _states(self, probes: list[StepProbe]) -> tuple[StepState, ...]:
        now = time.monotonic()
        pairs = zip(self._steps, probes, strict=True)
        return tuple(state_of(s.missing, f, self._totals.get(s.id), self._paces[s.id], now) for s, f in pairs)

    def _probes_with_retries(self, stop: threading.Event, on_silence: Callable[[LlmbError], None]) -> list[StepProbe]:
        """Retry `_probes` for some minutes if no answer comes. Slurm is asked only every ten seconds."""
        until = time.monotonic() + LINK_PATIENCE_S
        while True:
            now = time.monotonic()
            ask_slurm = self._asked_slurm_at is None or now >= self._asked_slurm_at + ASK_SLURM_EVERY_S
            try:
                probes = self._probes(ask_slurm=ask_slurm)
                if ask_slurm:
                    self._asked_slurm_at = now
                self._ask_sizes(probes)
            except (DisconnectedError, NoAnswerError, UnreachableError) as silence:
                on_silence(silence)
                if self._session.state == "closed" or time.monotonic() > until or stop.wait(LOOK_EVERY_S):
                    raise
            else:
                return probes

    def _ask_sizes(self, probes: list[StepProbe]) -> None:
        """Ask for the download sizes, once; a size stays unknown if the registry cannot be asked."""
        for step, now in zip(self._steps, probes, strict=True):
            if step.image and now.state != "done" and step.id not in self._totals:
                self._totals[step.id] = ask_registry(self._session, step.image, None, self._registry).download_bytes

    def _start(self, step: InstallStep) -> LlmbError | None:
        """Start a step detached; the error if it is unknown whether it started. Starting a step twice is harmless."""
        folder = self._step_folder(step)
        job = [_job_name(folder, step), step.in_job.command, *step.in_job.options] if step.in_job else ["", ""]
        text = _step_script(self._umask, self._install, step).encode()
        script = f"umask {self._umask}\n" + remote_text("lock.sh", "inside.sh", "sbatch.sh", "start.sh")
        words = [self._install, step.id, str(len(text)), *job]
        try:
            result = self._session.run_script(script, words, stdin=text, deadline_s=_START_DEADLINE_S)
            if result.exit_code == _CANNOT_BE_USED:
                raise LlmbError(
                    f"The install directory cannot be written: {clean(folder)}",
                    server_words(result.stderr),
                    "Choose an install directory that you may write to, without links below it, on a file system that "
                    "all nodes share.",
                )
            self._asked_slurm_at = None
        except (DisconnectedError, DeadlineError, UnreachableError) as silence:
            return silence
        return None

    def _step_folder(self, step: InstallStep) -> str:
        return f"{self._install}/.llmb-tui/steps/{step.id}"


def _not_started(step: InstallStep, patience_s: float) -> LlmbError:
    return LlmbError(
        f"{step.title}: the step did not start on the cluster.",
        f"The cluster has shown no trace of it for {duration(patience_s)}.",
        "Some login nodes kill the processes of a closed session (KillUserProcesses): ask the administrators.",
    )


def _killed_repeatedly(step: InstallStep) -> LlmbError:
    return LlmbError(
        f"{step.title}: something outside this program keeps killing the step.",
        f"It was started {_MOST_STARTS} times.",
        "The login node may allow too little time or memory, or kill the processes of a closed session: ask the "
        "administrators. Downloaded files are kept. Install again: the step continues.",
    )


def _job_name(folder: str, step: InstallStep) -> str:
    """A name that only this step in this install directory has, and always has."""
    return f"llmb-tui-{step.id}"[:_LONGEST_JOB_NAME] + f"-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"


def _step_script(umask: str, install: str, step: InstallStep) -> str:
    work = step.work.strip("\n")
    functions = [f"work() {{\n{work}\n}}", f"made() {{\n{shell_join(['there', *step.results])}\n}}"]
    arguments = shell_join(["set", "--", *step.args])
    place = f"install={shell_join([install])} step={shell_join([step.id])}"
    parts = ["#!/bin/sh", f"umask {umask}", place, *functions, arguments]
    return "\n".join([*parts, remote_text("lock.sh", "there.sh", "inside.sh", "step.sh")])
