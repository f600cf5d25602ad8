"""`Installer`: look at the install steps of a plan on its cluster, and run what is missing.

A step runs detached on the cluster (`remote/step.sh`), so a broken connection does not stop it, and whoever looks next
finds it. What is done, running or failed is read from the cluster each time; nothing about it is remembered here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from llmb_tui.cluster.failures import DeadlinePassed, Disconnected, Unreachable
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.launch.steps import InstallStep, install_steps
from llmb_tui.text import clean, clean_line

__all__ = ["InstallStep", "Installer", "StepState", "StepStatus", "install_steps"]

StepStatus = Literal["missing", "running", "done", "failed"]

_STATUSES: dict[str, StepStatus] = {
    "missing": "missing",
    "lost": "missing",
    "running": "running",
    "done": "done",
    "failed": "failed",
}
_LOOK_EVERY_S = 1.0
_STARTS_WITHIN_S = 30.0
_LINK_PATIENCE_S = 300.0

# One line `state bytes` and one line of the log for each step. The lock is touched every 5 s while its owner lives.
_LOOK = r"""
look() {
    folder=$1 growing=$2
    shift 2
    state=missing
    if [ -d "$folder/lock" ]; then
        state=running
        if [ -n "$(find "$folder/lock" -prune -mmin +2 2>/dev/null)" ]; then state=lost; fi
    elif [ -s "$folder/exit" ]; then
        state=failed
    fi
    whole=yes
    for path; do [ -d "$path" ] || [ -s "$path" ] || whole=no; done
    if [ "$whole" = yes ]; then state=done; fi
    if [ "$state" = done ]; then set -- "$1"; elif [ "$growing" ]; then set -- "$growing"*; fi
    bytes=$(ls -lnd "$@" 2>/dev/null | awk '/^-/ { sum += $5 } END { printf "%.0f", sum }')
    printf '%s %s\n' "$state" "${bytes:-0}"
    printf '%s\n' "$(tail -c 1000 "$folder/log" 2>/dev/null | tr '\r' '\n' | sed '/^[[:space:]]*$/d' | tail -n 1)"
}
"""
# $1 is the folder of the step. An exit code of an attempt that has ended would be taken for that of the new one.
_START = 'rm -f "$1/exit"; nohup sh "$1/step.sh" </dev/null >/dev/null 2>&1 &'


@dataclass(frozen=True, slots=True)
class StepState:
    """One step as it was found on the cluster. Texts are clean."""

    id: str
    title: str
    status: StepStatus
    detail: str = ""
    """Last line of its log, while it runs and when it failed."""
    size: str = ""
    """What it will take, takes so far, or has taken on the disk; empty where it does not matter."""


class Installer:
    """The steps of one plan on one cluster, in their order."""

    def __init__(self, session: Session, profile: ClusterProfile, steps: tuple[InstallStep, ...]) -> None:
        self._session = session
        self._folder = f"{profile.install_dir.rstrip('/')}/.llmb-tui/steps"
        self._steps = steps

    def look(self) -> tuple[StepState, ...]:
        """Every step as it is now, by one command. Raises Trouble when the cluster cannot be asked."""
        calls = [shell_join(["look", self._step_folder(s), s.growing, *s.results]) for s in self._steps]
        done = self._session.run(["sh", "-s"], stdin="\n".join([_LOOK, *calls, "exit 0\n"]).encode())
        lines = done.stdout.split("\n")
        if done.exit_code or len(lines) != 2 * len(self._steps) + 1:
            raise Trouble("The install steps could not be looked at.", clean(done.stderr).strip() or "No answer came.")
        return tuple(_state(s, lines[2 * i], lines[2 * i + 1]) for i, s in enumerate(self._steps))

    def run(self, on_change: Callable[[tuple[StepState, ...]], None], stop: threading.Event) -> tuple[StepState, ...]:
        """Run what is missing, one step after the other; answer when all are done, one has failed, or `stop` is set.

        A step that is running already is waited for, one that failed earlier is tried once more, and a step that runs
        when `stop` is set goes on without us. `on_change` is called from this thread. Raises Trouble when a step
        does not start, or when the cluster cannot be reached for five minutes.
        """
        started: dict[str, float] = {}
        shown: tuple[StepState, ...] = ()
        while True:
            states = self._look_patiently(stop)
            if states != shown:
                on_change(states)
                shown = states
            open_steps = [pair for pair in zip(self._steps, states, strict=True) if pair[1].status != "done"]
            if not open_steps or stop.is_set():
                return states
            step, state = open_steps[0]
            if step.id in started:
                if state.status == "failed":
                    return states
                if state.status == "missing" and time.monotonic() > started[step.id] + _STARTS_WITHIN_S:
                    raise _not_started(step)
            elif state.status != "running" and self._start(step):
                started[step.id] = time.monotonic()
            stop.wait(_LOOK_EVERY_S)

    def _look_patiently(self, stop: threading.Event) -> tuple[StepState, ...]:
        """`look`, however often the line breaks, for some minutes."""
        until = time.monotonic() + _LINK_PATIENCE_S
        while True:
            try:
                return self.look()
            except (Disconnected, DeadlinePassed, Unreachable):
                if self._session.state == "closed" or time.monotonic() > until or stop.wait(_LOOK_EVERY_S):
                    raise

    def _start(self, step: InstallStep) -> bool:
        """Start a step detached; False when the line broke meanwhile. Starting it twice is harmless."""
        folder = self._step_folder(step)
        try:
            done = self._session.run(["mkdir", "-p", folder])
            if done.exit_code:
                raise Trouble(
                    f"The install directory cannot be written: {folder}",
                    clean(done.stderr).strip(),
                    "Choose an install directory that you may write to, on a file system that all nodes share.",
                )
            self._session.write_file(f"{folder}/step.sh", _step_script(folder, step).encode())
            self._session.run_script(_START, [folder])
        except (Disconnected, DeadlinePassed, Unreachable):
            return False
        return True

    def _step_folder(self, step: InstallStep) -> str:
        return f"{self._folder}/{step.id}"


def _not_started(step: InstallStep) -> Trouble:
    return Trouble(
        f"{step.title}: the step does not start on the cluster.",
        f"{_STARTS_WITHIN_S:.0f} seconds after it was started, nothing of it is there.",
        "Some login nodes end what a closed session leaves behind (KillUserProcesses): ask the administrators.",
    )


def _step_script(folder: str, step: InstallStep) -> str:
    frame = resources.files("llmb_tui.remote").joinpath("step.sh").read_text(encoding="utf-8")
    work = step.work.strip("\n")
    arguments = shell_join(["set", "--", *step.args])
    return f"#!/bin/sh\ndir={shell_join([folder])}\nwork() {{\n{work}\n}}\n{arguments}\n{frame}"


def _state(step: InstallStep, status_line: str, log_line: str) -> StepState:
    found, _, size = status_line.partition(" ")
    if found not in _STATUSES:
        raise Trouble("The install steps could not be looked at.", f"The answer was {clean_line(status_line)!r}.")
    status = _STATUSES[found]
    detail = clean_line(log_line).strip() if status in ("running", "failed") else ""
    if found == "lost":
        detail = "An earlier attempt stopped without a word."
    so_far = f"{int(size) / 1e9:.1f} GB" if size.isdecimal() else ""
    sizes = {"missing": step.size, "failed": step.size, "running": f"{so_far} of {step.size}", "done": so_far}
    return StepState(step.id, step.title, status, detail, sizes[status] if step.size else "")
