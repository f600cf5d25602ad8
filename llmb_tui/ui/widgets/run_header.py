"""The lines over a run: which it is, where it runs, how its job and the link are, how far it is, and what is wrong."""

from __future__ import annotations

import time

from textual.content import Content
from textual.reactive import reactive

from llmb_tui.cluster.job_words import pending_reason
from llmb_tui.errors import LlmbError
from llmb_tui.language.instants import local_time
from llmb_tui.language.labels import run_label
from llmb_tui.language.quantities import age, clock
from llmb_tui.language.states import Stage, link_label, mark_label, state_label
from llmb_tui.language.text import capital, plural
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.ui.text import MUTED, STYLES, error_content, line, lines, plain, state_mark, state_part
from llmb_tui.ui.units import gauge
from llmb_tui.ui.widgets.run_parts import RunPart
from llmb_tui.watch.state import ENDED, FAILED, RunState

# A training step takes seconds; a log that is silent for longer is worth a look.
_SILENT_FROM_S = 120.0
STAGES: tuple[Stage, ...] = ("queued", "image", "start", "warm-up", "measuring", "done")
_JOINT = " ── "
_GAP = 3
_BAR_CELLS = (10, 40)
LOG_IN = lines(
    line(("The connection broke, and the cluster has a question before it lets us in again.", "bold")),
    line(("The job goes on meanwhile, and nothing of its log is lost. l logs in.", MUTED)),
)

_SUBMISSIONS = {
    "unknown": "It is not known whether this {job} was submitted.",
    "refused": "{scheduler} rejected the {job}.",
    "withdrawn": "This run has no {job}, and never will.",
    "intended": "This run is not submitted: its cluster has nothing of it.",
}


def header_lines(run: Run, notice: str, state: RunState, width: int) -> tuple[Content, Content]:
    """(who, where and link; job), each at most `width` cells. `notice` is the cluster's, such as `simulated`."""
    link, short = link_text(state), link_text(state, short=True)
    mark = line("  ", (f" {notice} ", "reverse")) if notice else Content("")
    room = width - mark.cell_length - short.cell_length - 2
    who = line((what_runs(run), "bold"), " · ", run.cluster).truncate(max(room, 0), ellipsis=True) + mark
    room = max(width - who.cell_length - 2, short.cell_length)
    if link.cell_length > room:
        link = link.truncate(room, ellipsis=True) if state.link == "lost" else short
    gap = max(width - who.cell_length - link.cell_length, 2)
    return line(who, " " * gap, link), job_text(run, state).truncate(width, ellipsis=True)


def what_runs(run: Run) -> str:
    """`nemotron4 15b fp8 · 64 × H100`."""
    selection = run.plan.selection
    return run_label(selection.workload, selection.size, selection.dtype, selection.scale, selection.gpu)


def job_text(run: Run, state: RunState) -> Content:
    """What the scheduler says of the job, or why there is none yet."""
    job, words = state.job, run.words
    parts = [line(jobs_of(run, job.id if job else ""))]
    if job is None:
        parts.append(line(run.job_state or state_label(run.submission).word))
    else:
        elapsed = f" {clock(job.elapsed_s)}" if job.elapsed_s else ""
        parts.append(line((f"{job.state}{elapsed}", "bold")))
        if job.waiting and job.starts_at is not None:
            parts.append(line(f"{words.scheduler} expects it to start {local_time(job.starts_at, time.time())}"))
        if job.nodes:
            parts.append(Content(plural(job.nodes, "node")))
        if job.restarts:
            parts.append(Content(f"restart {job.restarts}"))
        if job.finished and job.exit_code:
            parts.append(line(f"exit {job.exit_code}"))
        if job.reason:
            parts.append(line(pending_reason(job.reason) if job.waiting else job.reason))
    parts += [line(f"{words.job} {other.id} {other.state}") for other in state.others]
    if state.calls_per_minute and state.stage not in ENDED:
        parts.append(line((f"{words.scheduler} asked {state.calls_per_minute} × a minute", MUTED)))
    if not run.results:
        parts.append(line((PROCEDURES[run.procedure].title, MUTED)))
    return Content(" · ").join(parts)


def jobs_of(run: Run, seen: str = "") -> str:
    """The job; of several the one that is watched, or all as long as none was `seen`."""
    several = len(run.job_ids) > 1
    if seen:
        return f"watching {run.words.job} {seen}" if several else run.words.named([seen])
    if several:
        return f"{run.words.named(run.job_ids)}, of which {run.job_ids[-1]} is watched"
    return run.words.named(run.job_ids) if run.job_ids else f"run {run.id}"


def link_text(state: RunState, short: bool = False) -> Content:
    """The link as glyph and word, and how old the newest log byte is of a run that goes on; else it is closed."""
    goes_on = state.stage not in ENDED
    words, style = state_part(link_label(state.link if goes_on or state.link != "live" else "closed"))
    if state.link == "lost":
        style = f"bold {style}"
    parts = [Content.styled(words, style)]
    if short:
        return parts[0]
    if state.link == "live" and state.log_bytes and goes_on:
        silent = state.silent_s >= _SILENT_FROM_S
        text = f"log silent {age(state.silent_s)}" if silent else f"log {age(state.silent_s)} ago"
        parts.append(line((text, "$text-warning" if silent else MUTED)))
    elif state.link_note:
        parts.append(line((state.link_note, style)))
    return Content(" · ").join(parts)


class RunHeader(RunPart):
    """The header of the run that the screen shows."""

    DEFAULT_CSS = """
    RunHeader {
        height: 2;
        padding: 0 1;
        &.-results { height: 3; }
    }
    """
    notice: reactive[str] = reactive("")
    """The cluster's notice, such as `simulated, clock x30`."""

    def watch_training_run(self, run: Run | None) -> None:
        self.set_class(run is not None and bool(run.results), "-results")
        super().watch_training_run(run)

    def of_state(self, state: RunState) -> object:
        return state, self.notice

    def draw(self, run: Run, state: RunState) -> Content:
        width = self.content_size.width
        rows = [*header_lines(run, self.notice, state, width)]
        if results := run.results:
            words = f"{PROCEDURES[run.procedure].title} · results in "
            rows.append(line((words, MUTED), results).truncate(width, ellipsis=True))
        return lines(*rows)


def reached(state: RunState) -> Stage:
    """The last stage that a run was seen in, also when it ended before it was done."""
    if state.stage in STAGES:
        return state.stage
    if state.progress.median_s is not None:
        return "measuring"
    if state.progress.steps_done:
        return "warm-up"
    return "start" if state.job and state.job.elapsed_s else "queued"


def stage_line(state: RunState, width: int) -> Content:
    """Stages left, progress right: all stages where they fit beside it, else the current one."""
    figures = _progress(state)
    total = state.progress.steps_total
    needed = figures.cell_length + (_GAP + _BAR_CELLS[0] + 2 if total else _GAP)
    stages = _all_stages(state)
    if stages.cell_length + needed > width:
        stages = _current_stage(state)
    room = width - stages.cell_length - figures.cell_length
    cells = min(room - _GAP - 2, _BAR_CELLS[1])
    if not total or cells < _BAR_CELLS[0]:
        return line(stages, " " * max(room, _GAP), figures)
    return line(stages, " " * (room - cells - 2), gauge(state.progress.steps_done, total, cells), "  ", figures)


def _all_stages(state: RunState) -> Content:
    if state.stage == "submitted":
        parts = [_ahead(stage) for stage in STAGES]
        return Content.styled(_JOINT, MUTED).join(parts)
    current = STAGES.index(reached(state))
    parts = [line(state_mark(mark_label("done")), stage) for stage in STAGES[:current]]
    if state.stage not in STAGES:
        parts.append(line((f"{state_label(STAGES[current]).glyph} ", MUTED), STAGES[current]))
    parts.append(_stage(state.stage))
    if state.stage in STAGES:
        parts += [_ahead(stage) for stage in STAGES[current + 1 :]]
    return Content.styled(_JOINT, MUTED).join(parts)


def _current_stage(state: RunState) -> Content:
    if state.stage == "submitted":
        return line((f"{mark_label('open').glyph} not known yet", MUTED))
    if state.stage not in STAGES:
        return _stage(state.stage, f" at {reached(state)}")
    place = f" {STAGES.index(state.stage) + 1}/{len(STAGES)}"
    return _stage(state.stage) + line("" if state.stage == "done" else (place, MUTED))


def _stage(stage: Stage, more: str = "") -> Content:
    """The stage that a run is in; quiet ones are bold too."""
    label = state_label(stage)
    return line((label.text + more, "bold" if label.tone == "quiet" else f"bold {STYLES[label.tone]}"))


def _ahead(stage: Stage) -> Content:
    """A stage that a run is still to reach."""
    return line((f"{mark_label('open').glyph} {stage}", MUTED))


def _progress(state: RunState) -> Content:
    done, total = state.progress.steps_done, state.progress.steps_total
    if not total:
        return Content(f"step {done}" if done else "")
    parts = [f"step {done} of {total}"]
    if state.eta_s is not None and state.stage in STAGES[:-1]:
        parts.append(f"ETA {clock(state.eta_s)}")
    return Content("   ".join(parts))


class StageLine(RunPart):
    """The stage line of the run that the screen shows."""

    DEFAULT_CSS = "StageLine { height: 1; padding: 0 1; }"

    def of_state(self, state: RunState) -> object:
        return state.stage, state.job, state.eta_s, state.progress

    def draw(self, run: Run, state: RunState) -> Content:  # noqa: ARG002 - as the others are given
        return stage_line(state, self.content_size.width)


def notice_text(run: Run | None, state: RunState | None, error: LlmbError | None) -> Content:
    """The notice; empty where there is nothing to say."""
    if error is not None:
        return error_content(error)
    if run is not None and run.submission != "submitted":
        words = run.words
        told_first = _SUBMISSIONS[run.submission].format(scheduler=words.scheduler, job=words.job)
        parts = [line((told_first, "bold")), line(run.note)]
        if run.submission == "unknown":
            named = f"{capital(words.job)} name {run.job_name}. Nothing is submitted again before that is known."
            parts += [line(named), line(("While the cluster answers it is asked again by itself; u asks now.", MUTED))]
        if run.submission == "intended":
            parts.append(line(("s submits it as it was agreed to, w withdraws it.", MUTED)))
        return lines(*filter(None, parts))
    if state is None:
        return Content("")
    failure = state.progress.failure
    ends_soon = state.stage not in ENDED and failure is not None and failure.ends_a_run
    if failure is not None and (state.stage in FAILED or ends_soon):
        # A scheduler reports a failed job only after its last process, which may wait for minutes.
        when = "" if state.stage in FAILED else "The log has an error after its newest step. "
        what_to_do = error_content(LlmbError(when + failure.reason, fix=failure.fix))
        # The line may be long: what does not fit of it leaves the rest in sight.
        return lines(what_to_do, line(("e goes to the first error in the log.", MUTED)), plain(failure.quotation))
    if state.link == "closed" and state.stage not in ENDED and state.link_note:
        return lines(line((state.link_note, "bold")), line(("The job is not touched. t tries again.", MUTED)))
    # A lost link tells its own note in the header; here it is the scheduler or the log that gives trouble.
    notes = (state.slurm_note, state.link_note) if state.link == "live" else ()
    verdict = state.verdict if state.stage in ENDED else None
    doubts = verdict.reasons if verdict is not None and verdict.result != "PASS" else ()
    cancel = run.cancel_note if run is not None else ""
    return lines(*map(line, filter(None, (cancel, *doubts, " ".join(filter(None, notes))))))
