"""What a person has to know of a run before the figures: an error, an open submission, why it failed. Pure."""

from __future__ import annotations

from textual.content import Content

from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.text import capital
from llmb_tui.ui.text import MUTED, line, lines, told
from llmb_tui.watch.state import ENDED, FAILED, RunState

LOG_IN = lines(
    [
        line(("The connection broke, and the cluster has a question before it lets us in again.", "bold")),
        line(("The job goes on meanwhile, and nothing of its log is lost. l logs in.", MUTED)),
    ]
)

_SUBMISSIONS = {
    "unknown": "It is not known whether this {job} was submitted.",
    "refused": "{scheduler} refused the {job}.",
    "withdrawn": "This run has no {job}, and never will.",
    "intended": "This run was prepared, and nothing of it was sent.",
}


def notice_text(run: Run | None, state: RunState | None, trouble: Trouble | None) -> Content:
    """The notice; empty where there is nothing to say."""
    if trouble is not None:
        return told(trouble)
    if run is not None and run.submission != "submitted":
        words = run.words
        told_first = _SUBMISSIONS[run.submission].format(scheduler=words.scheduler, job=words.job)
        parts = [line((told_first, "bold")), line(run.note)]
        if run.submission == "unknown":
            parts.append(
                line(f"{capital(words.job)} name {run.job_name}. Nothing is submitted again before that is known.")
            )
            parts.append(line(("While the cluster answers it is asked again by itself; u asks now.", MUTED)))
        if run.submission == "intended":
            parts.append(line(("s submits it as it was agreed to, w withdraws it.", MUTED)))
        return lines([part for part in parts if part])
    if state is None:
        return Content("")
    failure = state.progress.failure
    if state.stage in FAILED and failure is not None:
        told_by_log = told(Trouble(failure.reason, failure.line, failure.fix))
        return lines([told_by_log, line(("e goes to the first error in the log.", MUTED))])
    if state.link == "closed" and state.stage not in ENDED and state.link_note:
        return lines([line((state.link_note, "bold")), line(("The job is not touched. t tries again.", MUTED))])
    # A lost link tells its own note in the header; here it is the scheduler or the log that gives trouble.
    notes = (state.slurm_note, state.link_note) if state.link == "live" else ()
    verdict = state.verdict if state.stage in ENDED else None
    doubts = verdict.reasons if verdict is not None and verdict.result != "PASS" else ()
    cancel = run.cancel_note if run is not None else ""
    return lines(list(map(line, filter(None, (cancel, *doubts, " ".join(filter(None, notes)))))))
