"""`StageLine`: how far a run is, from the queue to the verdict, in one line."""

from __future__ import annotations

from textual.content import Content

from llmb_tui.ui.text import MUTED
from llmb_tui.ui.widgets.durations import clock
from llmb_tui.ui.widgets.gauge import gauge
from llmb_tui.ui.widgets.run_part import RunPart
from llmb_tui.watch.state import RunState, Stage

STAGES: tuple[Stage, ...] = ("queued", "image", "start", "warm-up", "measuring", "done")
ENDS: dict[Stage, tuple[str, str]] = {"failed": ("✗", "$text-error"), "cancelled": ("■", "$text-warning")}
_JOINT = " ── "
_GAP = 3
_BAR_CELLS = (10, 40)


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
        return Content("").join([stages, Content(" " * max(room, _GAP)), figures])
    bar = gauge(state.progress.steps_done, total, cells)
    return Content("").join([stages, Content(" " * (room - cells - 2)), bar, Content("  "), figures])


def _all_stages(state: RunState) -> Content:
    if state.stage == "unknown":
        parts = [Content.styled(f"○ {stage}", MUTED) for stage in STAGES]
        return Content.styled(_JOINT, MUTED).join(parts)
    here = STAGES.index(reached(state))
    ended = state.stage in ENDS
    parts = [Content.assemble(("✓ ", "$text-success"), stage) for stage in STAGES[:here]]
    if ended:
        parts.append(Content.assemble(("● ", MUTED), STAGES[here]))
        glyph, style = ENDS[state.stage]
        parts.append(Content.styled(f"{glyph} {state.stage}", f"bold {style}"))
    elif state.stage == "done":
        parts.append(Content.styled("✓ done", "bold $text-success"))
    else:
        parts.append(Content.styled(f"● {STAGES[here]}", "bold $text-accent"))
        parts += [Content.styled(f"○ {stage}", MUTED) for stage in STAGES[here + 1 :]]
    return Content.styled(_JOINT, MUTED).join(parts)


def _current_stage(state: RunState) -> Content:
    if state.stage == "unknown":
        return Content.styled("○ not known yet", MUTED)
    if state.stage in ENDS:
        glyph, style = ENDS[state.stage]
        return Content.styled(f"{glyph} {state.stage} at {reached(state)}", f"bold {style}")
    if state.stage == "done":
        return Content.styled("✓ done", "bold $text-success")
    place = f" {STAGES.index(state.stage) + 1}/{len(STAGES)}"
    return Content.assemble((f"● {state.stage}", "bold $text-accent"), (place, MUTED))


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

    def render(self) -> Content:
        """Nothing is said before the first state."""
        return stage_line(self.run_state or RunState(""), self.content_size.width)
