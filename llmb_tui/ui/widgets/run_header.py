"""`RunHeader`: which run this is, where it runs, what Slurm says, whether the link lives, where the results are."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive

from llmb_tui.cluster.slurm.pending import pending_reason
from llmb_tui.launch.published.spec import PublishedSpec
from llmb_tui.launch.run import Run
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.units import PROCEDURES
from llmb_tui.ui.widgets.durations import age, clock, moment
from llmb_tui.ui.widgets.run_part import RunPart
from llmb_tui.watch.state import Link, RunState

_LINKS: dict[Link, tuple[str, str, str]] = {
    "live": ("●", "live", "$text-success"),
    "connecting": ("○", "connecting", "$text-warning"),
    "lost": ("✗", "link lost", "bold $text-error"),
    "closed": ("○", "closed", MUTED),
}
# A training step takes seconds; a log that is silent for longer is worth a look.
_SILENT_FROM_S = 120.0


def header_lines(run: Run, notice: str, state: RunState, width: int) -> tuple[Content, Content]:
    """(who, where and link; job), each at most `width` cells. `notice` is the cluster's, such as `simulated`."""
    who = line((what_runs(run), "bold"), " · ", run.cluster)
    if notice:
        who += line("  ", (f" {notice} ", "reverse"))
    link, short = link_text(state), link_text(state, short=True)
    room = max(width - who.cell_length - 2, short.cell_length)
    if link.cell_length > room:
        link = link.truncate(room, ellipsis=True) if state.link == "lost" else short
    gap = max(width - who.cell_length - link.cell_length, 2)
    return Content("").join([who, Content(" " * gap), link]), job_text(run, state).truncate(width, ellipsis=True)


def what_runs(run: Run) -> str:
    """`nemotron4 15b fp8 · 64 × H100`."""
    selection = run.plan.selection
    return f"{selection.workload} {selection.size} {selection.dtype} · {selection.scale} × {selection.gpu.upper()}"


def job_text(run: Run, state: RunState) -> Content:
    """What Slurm says of the job, or why there is none yet."""
    job = state.job
    parts = [line(jobs_of(run, job.id if job else ""))]
    if job is None:
        parts.append(line(run.job_state or f"submission {run.submission}"))
    else:
        elapsed = f" {clock(job.elapsed_s)}" if job.elapsed_s else ""
        parts.append(line((f"{job.state}{elapsed}", "bold")))
        if job.nodes:
            parts.append(Content(f"{job.nodes} node{'s' * (job.nodes != 1)}"))
        if job.restarts:
            parts.append(Content(f"restart {job.restarts}"))
        if job.finished and job.exit_code:
            parts.append(line(f"exit {job.exit_code}"))
        if job.reason:
            parts.append(line(pending_reason(job.reason) if job.waiting else job.reason))
        if job.waiting and job.starts_at is not None:
            parts.append(line(f"Slurm expects it to start {moment(job.starts_at)}"))
    parts += [line(f"job {other.id} {other.state}") for other in state.others]
    if state.calls_per_minute:
        parts.append(line((f"Slurm asked {state.calls_per_minute} × a minute", MUTED)))
    if not results_of(run):
        parts.append(line((f"{PROCEDURES[run.procedure]} procedure", MUTED)))
    return Content(" · ").join(parts)


def jobs_of(run: Run, seen: str = "") -> str:
    """The job; of several the one that is watched, or all as long as none was `seen`."""
    several = len(run.job_ids) > 1
    if seen:
        return f"watching job {seen}" if several else f"job {seen}"
    if several:
        return f"jobs {', '.join(run.job_ids)}, of which {run.job_ids[-1]} is watched"
    return f"job {run.job_ids[0]}" if run.job_ids else f"run {run.id}"


def results_of(run: Run) -> str:
    """Folder on the cluster with what a run of the published procedure leaves; empty for others.

    NeMo-Run makes one for each experiment, which is known when the job is.
    """
    if not isinstance(run.spec, PublishedSpec):
        return ""
    return run.log.folder if run.spec.how == "bash" and run.log is not None else run.spec.results


def link_text(state: RunState, short: bool = False) -> Content:
    """The link as glyph and word, and how old the newest log byte is."""
    glyph, word, style = _LINKS[state.link]
    parts = [Content.styled(f"{glyph} {word}", style)]
    if short:
        return parts[0]
    if state.link == "live" and state.log_bytes:
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
        """The procedure, and where the results are, is a line more."""
        self.set_class(run is not None and bool(results_of(run)), "-results")

    def render(self) -> Content:
        """Empty until the run is loaded."""
        if self.training_run is None:
            return Content("")
        state, width = self.run_state or RunState(self.training_run.id), self.content_size.width
        rows = [*header_lines(self.training_run, self.notice, state, width)]
        if results := results_of(self.training_run):
            words = f"{PROCEDURES[self.training_run.procedure]} procedure · results in "
            rows.append(line((words, MUTED), results).truncate(width, ellipsis=True))
        return Content("\n").join(rows)
