"""`VerdictCard`: is the cluster as fast as it should be? So far while the run goes on, final when it is done."""

from __future__ import annotations

from textual.content import Content

from llmb_tui.ui.text import MUTED, line, lines
from llmb_tui.ui.units import PROCEDURES, seconds
from llmb_tui.ui.widgets.run_part import ENDED, RunPart
from llmb_tui.ui.widgets.step_chart import METHOD_WORDS
from llmb_tui.watch.state import Result, RunState, Verdict

RESULTS: dict[Result, tuple[str, str]] = {
    "PASS": ("✓", "$text-success"),
    "WARN": ("!", "$text-warning"),
    "FAIL": ("✗", "$text-error"),
}
_STRIP_HEIGHT = 2


def result_word(verdict: Verdict) -> Content:
    """Glyph and word; the word alone says it all."""
    glyph, style = RESULTS[verdict.result]
    return Content.styled(f"{glyph} {verdict.result}", f"bold {style}")


def verdict_card(state: RunState, against: str, procedure: str) -> Content:
    """The verdict with its ratio, its rule and its reasons; or why there is none. `against` names what 100 % is."""
    verdict = state.verdict
    if verdict is None:
        return line((state.no_verdict or "No verdict yet.", MUTED))
    doubtful = verdict.result != "PASS"
    return lines(
        [
            Content.assemble(result_word(verdict), f"   {ratio_text(verdict, against)}"),
            line(f"{seconds(verdict.measured_s)} against {verdict.against}"),
            line((f"counts: {verdict.rule} · {procedure} procedure", MUTED)),
            *(line((reason, "$text-warning" if doubtful else MUTED)) for reason in verdict.reasons),
        ]
    )


def verdict_strip(state: RunState, against: str, procedure: str, width: int) -> Content:
    """The verdict in one line."""
    verdict = state.verdict
    if verdict is None:
        strip = line((state.no_verdict or "No verdict yet.", MUTED))
    else:
        rule = f"   {verdict.rule} · {procedure}"
        strip = Content.assemble(("" if state.stage in ENDED else "so far ", MUTED), result_word(verdict), "   ")
        strip += line(f"{ratio_text(verdict, against)}   {seconds(verdict.measured_s)}", (rule, MUTED))
    return strip.truncate(width, ellipsis=True)


def ratio_text(verdict: Verdict, against: str) -> str:
    """`98.5 % of published`: the speed reached as a part of the expected one."""
    return f"{verdict.ratio * 100:.1f} % of {against}"


class VerdictCard(RunPart):
    """The verdict of the run that the screen shows; one line where the widget is that low."""

    DEFAULT_CSS = """
    VerdictCard {
        border: round $border-blurred;
        border-title-color: $text;
        padding: 0 1;
        height: 1fr;
    }
    """

    def watch_run_state(self, state: RunState | None) -> None:
        """The title says whether the verdict is final."""
        self.border_title = "verdict" if state and state.stage in ENDED else "verdict so far"

    def render(self) -> Content:
        """Nothing is said before the first state but that there is no verdict yet."""
        state = self.run_state or RunState("")
        run = self.training_run
        if run is None:
            return Content("")
        against = METHOD_WORDS[run.plan.estimate.method] if run.plan.estimate else "expected"
        procedure = PROCEDURES[run.procedure]
        if self.content_size.height < _STRIP_HEIGHT:
            return verdict_strip(state, against, procedure, self.content_size.width)
        return verdict_card(state, against, procedure)
