"""`line_teller`: what happens to a run that is watched, in lines; what stays as it is is said again after a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from llmb_tui.cluster.job_words import words_of_job
from llmb_tui.language.quantities import duration, step_time
from llmb_tui.language.states import link_label
from llmb_tui.launch.run import Run
from llmb_tui.watch.report import label_of
from llmb_tui.watch.state import RunState

AGAIN_AFTER_S = 300.0


class RepeatLimiter:
    """When something is to be said: at once where it is new, and again when it has stayed so for a while."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._what: object = self
        self._since = self._said_at = 0.0

    def due(self, what: object) -> str | None:
        """Empty for what is new, `for 5 min` for what is so still; None while that was said a short time ago."""
        now = self._now()
        if what != self._what:
            self._what, self._since, self._said_at = what, now, now
            return ""
        if now - self._said_at < AGAIN_AFTER_S:
            return None
        self._said_at = now
        return f"for {duration(now - self._since)}"


def line_teller(
    run: Run, tell: Callable[[str], None], now: Callable[[], float] = time.monotonic
) -> Callable[[RunState], None]:
    """A `publish` that tells each change of stage, job, step, link and notes in a line, and no line twice in a row."""
    stands, notes_stand = RepeatLimiter(now), RepeatLimiter(now)
    last_line = ""

    def publish(state: RunState) -> None:
        nonlocal last_line
        words, notes = _words(run, state), " ".join(filter(None, (state.link_note, state.slurm_note)))
        lasting, noted = stands.due(words), notes_stand.due(notes)
        if noted and not notes:
            noted = None  # that there is nothing to note is said once
        if lasting is None and noted is None:
            return
        line = " · ".join(filter(None, (words, lasting, *(() if noted is None else (notes, noted)))))
        if line != last_line:
            last_line = line
            tell(line)

    return publish


def _words(run: Run, state: RunState) -> str:
    """How the run stands, without the notes."""
    progress, job = state.progress, state.job
    parts = [f"  {label_of(run, state).word}"]
    if job:
        parts += [f"job {job.id} {job.state}", words_of_job(job)]
    if progress.steps_done:
        parts.append(f"step {progress.steps_done} of {progress.steps_total or '?'}")
    if progress.last and progress.last.step_time_s is not None:
        parts.append(step_time(progress.last.step_time_s))
    if state.link == "lost":
        parts.append(link_label("lost").word)
    return " · ".join(filter(None, parts))
