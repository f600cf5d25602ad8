"""Progress of a watched run as lines of text; an unchanged state is repeated after some minutes."""

from __future__ import annotations

import time
from collections.abc import Callable

from llmb_tui.cluster.job_words import words_of_job
from llmb_tui.language.quantities import duration, step_time
from llmb_tui.language.states import link_label
from llmb_tui.launch.run import Run
from llmb_tui.watch.report import label_of
from llmb_tui.watch.state import RunState

REPEAT_AFTER_S = 300.0


class RepeatLimiter:
    """Decides when a text is printed: at once if it is new, and again after each `REPEAT_AFTER_S` in which it stays."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._text: object = self
        self._since = self._printed_at = 0.0

    def due(self, text: object) -> str | None:
        """Empty for a new text, its age such as `for 5 min` for an old one; None if it was printed recently."""
        now = self._now()
        if text != self._text:
            self._text, self._since, self._printed_at = text, now, now
            return ""
        if now - self._printed_at < REPEAT_AFTER_S:
            return None
        self._printed_at = now
        return f"for {duration(now - self._since)}"


def line_printer(
    run: Run, emit: Callable[[str], None], now: Callable[[], float] = time.monotonic
) -> Callable[[RunState], None]:
    """Callback that prints a line at each change of stage, job, step, link or notes, and no line twice in a row."""
    states, notes_limiter = RepeatLimiter(now), RepeatLimiter(now)
    last_line = ""

    def publish(state: RunState) -> None:
        nonlocal last_line
        text, notes = _state_text(run, state), " ".join(filter(None, (state.link_note, state.slurm_note)))
        state_age, notes_age = states.due(text), notes_limiter.due(notes)
        if notes_age and not notes:
            notes_age = None  # the absence of notes is not repeated
        if state_age is None and notes_age is None:
            return
        line = " · ".join(filter(None, (text, state_age, *(() if notes_age is None else (notes, notes_age)))))
        if line != last_line:
            last_line = line
            emit(line)

    return publish


def _state_text(run: Run, state: RunState) -> str:
    """State of the run in one line, without the notes."""
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
