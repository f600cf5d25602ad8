"""The lines at the top of a run's screen: name, cluster, job, connection, stage, progress and notice."""

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

# A training step takes seconds, so a log that is silent for longer is marked.
_SILENT_FROM_S = 120.0
STAGES: tuple[Stage, ...] = ("queued", "image", "start", "warm-up", "measuring", "done")
_JOINT = " ── "
_GAP = 3
_BAR_CELLS = (10, 40)
LOG_IN = lines(
    line(("The connection was lost, and a new login needs your answer.", "bold")),
    line(("The job continues, and its log is kept. l: log in", MUTED)),
)

_SUBMISSIONS = {
    "unknown": "It is unknown whether this {job} was submitted.",
    "refused": "{scheduler} rejected the {job}.",
    "withdrawn": "This run was withdrawn, and its {job} was never submitted.",
    "intended": "This run is not submitted. No part of it is on the cluster.",
}


def header_lines(run: Run, notice: str, state: RunState, width: int) -> tuple[Content, Content]:
    """Two lines of at most `width` cells: run, cluster and connection; job. `notice`: the cluster's, as `simulated`."""
    link, short = link_text(state), link_text(state, short=True)
    mark = line("  ", (f" {notice} ", "reverse")) if notice else Content("")
    room = width - mark.cell_length - short.cell_length - 2
    left = line((run_title(run), "bold"), " · ", run.cluster).truncate(max(room, 0), ellipsis=True) + mark
    room = max(width - left.cell_length - 2, short.cell_length)
    if link.cell_length > room:
        link = link.truncate(room, ellipsis=True) if state.link == "lost" else short
    gap = max(width - left.cell_length - link.cell_length, 2)
    return line(left, " " * gap, link), job_text(run, state).truncate(width, ellipsis=True)


def run_title(run: Run) -> str:
    """Configuration of a run, such as `nemotron4 15b fp8 · 64 × H100`."""
    selection = run.plan.selection
    return run_label(selection.workload, selection.size, selection.dtype, selection.scale, selection.gpu)


def job_text(run: Run, state: RunState) -> Content:
    """State of the job by the scheduler, or the state of the submission if there is no job."""
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
    if not run.results:
        parts.append(line((PROCEDURES[run.procedure].title, MUTED)))
    return Content(" · ").join(parts)


def jobs_of(run: Run, watched: str = "") -> str:
    """The run's job. Of several jobs the watched one; all of them if `watched` is empty."""
    several = len(run.job_ids) > 1
    if watched:
        return f"watching {run.words.job} {watched}" if several else run.words.named([watched])
    if several:
        return f"{run.words.named(run.job_ids)} (watching {run.job_ids[-1]})"
    return run.words.named(run.job_ids) if run.job_ids else f"run {run.id}"


def link_text(state: RunState, short: bool = False) -> Content:
    """Connection as glyph and word, with the age of the newest log byte; closed if the run is finished."""
    is_active = state.stage not in ENDED
    text, style = state_part(link_label(state.link if is_active or state.link != "live" else "closed"))
    if state.link == "lost":
        style = f"bold {style}"
    parts = [Content.styled(text, style)]
    if short:
        return parts[0]
    if state.link == "live" and state.log_bytes and is_active:
        silent = state.silent_s >= _SILENT_FROM_S
        log_age = f"log silent {age(state.silent_s)}" if silent else f"log {age(state.silent_s)} ago"
        parts.append(line((log_age, "$text-warning" if silent else MUTED)))
    elif state.link_note:
        parts.append(line((state.link_note, style)))
    return Content(" · ").join(parts)


class RunHeader(RunPart):
    """The header of the screen's run."""

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

    def shown_values(self, state: RunState) -> object:
        return state, self.notice

    def draw(self, run: Run, state: RunState) -> Content:
        width = self.content_size.width
        rows = [*header_lines(run, self.notice, state, width)]
        if results := run.results:
            label = f"{PROCEDURES[run.procedure].title} · results in "
            rows.append(line((label, MUTED), results).truncate(width, ellipsis=True))
        return lines(*rows)


def last_stage(state: RunState) -> Stage:
    """The last known stage of a run, also if it ended before it was done."""
    if state.stage in STAGES:
        return state.stage
    if state.progress.median_s is not None:
        return "measuring"
    if state.progress.steps_done:
        return "warm-up"
    return "start" if state.job and state.job.elapsed_s else "queued"


def stage_line(state: RunState, width: int) -> Content:
    """Stages left, progress right: all stages if there is room, else the current one."""
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
        parts = [_future_stage(stage) for stage in STAGES]
        return Content.styled(_JOINT, MUTED).join(parts)
    current = STAGES.index(last_stage(state))
    parts = [line(state_mark(mark_label("done")), stage) for stage in STAGES[:current]]
    if state.stage not in STAGES:
        parts.append(line((f"{state_label(STAGES[current]).glyph} ", MUTED), STAGES[current]))
    parts.append(_stage(state.stage))
    if state.stage in STAGES:
        parts += [_future_stage(stage) for stage in STAGES[current + 1 :]]
    return Content.styled(_JOINT, MUTED).join(parts)


def _current_stage(state: RunState) -> Content:
    if state.stage == "submitted":
        return line((f"{mark_label('open').glyph} stage unknown", MUTED))
    if state.stage not in STAGES:
        return _stage(state.stage, f" at {last_stage(state)}")
    place = f" {STAGES.index(state.stage) + 1}/{len(STAGES)}"
    return _stage(state.stage) + line("" if state.stage == "done" else (place, MUTED))


def _stage(stage: Stage, suffix: str = "") -> Content:
    """The current stage, in bold even if its tone is quiet."""
    label = state_label(stage)
    return line((label.text + suffix, "bold" if label.tone == "quiet" else f"bold {STYLES[label.tone]}"))


def _future_stage(stage: Stage) -> Content:
    """A stage that a run has not reached."""
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
    """The stage line of the screen's run."""

    DEFAULT_CSS = "StageLine { height: 1; padding: 0 1; }"

    def shown_values(self, state: RunState) -> object:
        return state.stage, state.job, state.eta_s, state.progress

    def draw(self, run: Run, state: RunState) -> Content:  # noqa: ARG002 - signature of `RunPart`
        return stage_line(state, self.content_size.width)


def notice_text(run: Run | None, state: RunState | None, error: LlmbError | None) -> Content:
    """Notice of an error, a submission or a failed run; may be empty."""
    if error is not None:
        return error_content(error)
    if run is not None and run.submission != "submitted":
        words = run.words
        title = _SUBMISSIONS[run.submission].format(scheduler=words.scheduler, job=words.job)
        parts = [line((title, "bold")), line(run.note)]
        if run.submission == "unknown":
            job_name = f"{capital(words.job)} name {run.job_name}. The run is not submitted again until this is known."
            hint = "As long as the cluster responds, it is checked automatically. u: check now"
            parts += [line(job_name), line((hint, MUTED))]
        if run.submission == "intended":
            parts.append(line(("s: submit as confirmed · w: withdraw", MUTED)))
        return lines(*filter(None, parts))
    if state is None:
        return Content("")
    failure = state.progress.failure
    if failure is not None and (state.stage in FAILED or state.is_failing):
        when = "" if state.stage in FAILED else "The log has an error after its newest step. "
        what_to_do = error_content(LlmbError(when + failure.reason, fix=failure.fix))
        # The line is last: if it is too long for the screen, the other text stays visible.
        return lines(what_to_do, line(("e: first error in the log", MUTED)), plain(failure.quotation))
    if state.link == "closed" and state.stage not in ENDED and state.link_note:
        return lines(line((state.link_note, "bold")), line(("The job is not affected. t: try again", MUTED)))
    # The header shows the note of a lost connection; this one is about the scheduler or the log.
    notes = (state.slurm_note, state.link_note) if state.link == "live" else ()
    verdict = state.verdict if state.stage in ENDED else None
    doubts = verdict.reasons if verdict is not None and verdict.result != "PASS" else ()
    cancel = run.cancel_note if run is not None else ""
    return lines(*map(line, filter(None, (cancel, *doubts, " ".join(filter(None, notes))))))
