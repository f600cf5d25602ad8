"""`document`: the JSON object of a run, which other programs rely on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.language.states import FAILING, Label, RunStateName, row_label, state_label
from llmb_tui.language.text import capital
from llmb_tui.launch.run import Run
from llmb_tui.plan.document import document as plan_document
from llmb_tui.watch.run_reducer import stage_of
from llmb_tui.watch.state import Progress, RunState, ValidityCheck
from llmb_tui.watch.verdict import rule_s, rule_words


def document(run: Run, state: RunState) -> dict[str, Any]:
    """The JSON object of a run (docs/verbs.md).

    Without a verdict its fields are null, and its reasons are those for the missing verdict and for a failure.
    `step_time_s` is always the value by the recipe's rule.
    """
    progress, verdict = state.progress, state.verdict
    return {
        "id": run.id,
        "selection": plan_document(run.plan)["selection"],
        "procedure": run.procedure,
        "cluster": run.cluster,
        "job_ids": list(run.job_ids),
        "state": state_word(run, state),
        "submitted_at": run.submitted_at,
        "steps_done": progress.steps_done,
        "steps_total": progress.steps_total if progress.steps_total is not None else run.plan.steps,
        "step_time_s": rule_s(run.plan, run.rule, progress),
        "median_step_time_s": progress.median_s,
        "last_step_time_s": progress.last.step_time_s if progress.last else None,
        "rule": rule_words(run.rule),
        "cancel": run.cancel.outcome if run.cancel else None,
        "starts": progress.starts,
        "validity": validity_document(state.validity),
        "verdict": {
            "result": verdict.result if verdict else None,
            "ratio": verdict.ratio if verdict else None,
            "against": verdict.against if verdict else None,
            "reasons": list(verdict_reasons(state)),
        },
    }


def verdict_reasons(state: RunState) -> tuple[str, ...]:
    """The reasons of the verdict; without one, why there is none and why the run failed."""
    return state.verdict.reasons if state.verdict else tuple(filter(None, (state.no_verdict, state.why_failed)))


def validity_document(checks: Sequence[ValidityCheck]) -> list[dict[str, str | None]]:
    """The JSON objects of the checks (CONTRACT: `validity`)."""
    keys = ("id", "outcome", "found", "expected")
    return [{**{key: getattr(check, key) for key in keys}, "line": check.line or None} for check in checks]


def state_word(run: Run, state: RunState) -> RunStateName:
    """State of a run in one word: its submission until it has a job, then its stage.

    If Slurm has answered but the log was not read yet, it is the earliest stage that is possible.
    """
    if run.submission != "submitted":
        return run.submission
    if state.stage != "submitted" or run.job_state is None:
        return state.stage
    return stage_of(Job(run.job_ids[-1], "", run.job_state), Progress(), started=False, ended=False)


def label_of(run: Run, state: RunState) -> Label:
    """Label of a run's state for display; until its log is read, only the scheduler's state is known."""
    name = state_word(run, state)
    if run.submission == "submitted" and state.is_failing:
        return FAILING
    if run.submission != "submitted" or state.stage != "submitted" or run.job_state is None:
        return state_label(name)
    if run.job_state == "COMPLETED":
        return state_label("done")
    if run.job_state in TERMINAL_STATES:
        return state_label(stage_of(Job(run.job_ids[-1], "", run.job_state), Progress(), started=False, ended=True))
    return row_label("running") if name == "image" else state_label(name)


def cancel_words(run: Run, cancelled: Sequence[str]) -> str:
    """Message about the result of cancelling a run; `cancelled`: ids of the jobs that had not ended."""
    words = run.words
    asked = f"{words.scheduler} was asked to cancel {words.named(cancelled)}."
    over = [job_id for job_id in run.job_ids if job_id not in cancelled]
    if not over:
        return asked
    was_over = f"{capital(words.named(over))} {'was' if len(over) == 1 else 'were'} over already"
    return f"{asked} {was_over}." if cancelled else f"{was_over}: nothing was cancelled."
