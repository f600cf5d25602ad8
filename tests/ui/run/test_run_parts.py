"""The parts of the run screen as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.app import App, ComposeResult

from llmb_tui.cluster.job import Job
from llmb_tui.language.quantities import age, clock
from llmb_tui.language.states import VerdictResult
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.ui.units import gauge
from llmb_tui.ui.widgets.run_header import header_lines, last_stage, link_text, stage_line
from llmb_tui.ui.widgets.run_parts import (
    Metrics,
    loss_trend,
    metric_rows,
    metrics_card,
    metrics_strip,
    verdict_card,
    verdict_strip,
)
from llmb_tui.watch.events import JobUpdated, LinkChanged, LogRead
from llmb_tui.watch.progress import fold
from llmb_tui.watch.run_reducer import RunReducer
from llmb_tui.watch.state import Progress, RunState, Step, Verdict
from tests.kit.runs import make_run
from tests.ui.run.run_states import STATES, progress

NOTICE = "simulated, clock x30"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-7200, "00:00"), (0, "00:00"), (38.9, "00:38"), (252, "04:12"), (3852, "1:04:12"), (90_061, "1d 01:01:01")],
)
def test_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-7200, "0 s"), (0.2, "0 s"), (38.9, "38 s"), (252, "4 min"), (7300, "2 h"), (200_000, "2 d")]
)
def test_an_age(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_a_gauge_is_full_only_at_the_end() -> None:
    assert gauge(50, 50, 10).plain == "█" * 10
    assert gauge(49, 50, 10).plain != "█" * 10
    assert gauge(0, 50, 10).plain == " " * 10
    assert gauge(31, 50, 10).cell_length == 10


@pytest.mark.parametrize("width", [78, 100, 118, 198])
@pytest.mark.parametrize("name", ["queued", "measuring", "done", "failed", "lost"])
def test_the_stage_line_fits(width: int, name: str) -> None:
    assert stage_line(STATES[name], width).cell_length <= width


def test_the_stage_line_shows_the_stage_of_the_run() -> None:
    assert stage_line(STATES["measuring"], 118).plain == (
        "✓ queued ── ✓ image ── ✓ start ── ✓ warm-up ── ● measuring ── ○ done"
        "   ████████████▍         step 31 of 50   ETA 00:38"
    )
    assert stage_line(STATES["measuring"], 78).plain.startswith("● measuring 5/6   ")
    assert stage_line(STATES["measuring"], 78).plain.endswith("  step 31 of 50   ETA 00:38")


def test_a_failed_run_keeps_its_last_stage() -> None:
    assert last_stage(STATES["failed"]) == "warm-up"
    line = stage_line(STATES["failed"], 118).plain
    assert line.startswith("✓ queued ── ✓ image ── ✓ start ── ● warm-up ── ✗ failed")
    assert stage_line(replace(STATES["queued"], stage="cancelled"), 60).plain.startswith("◌ queued ── ■ cancelled")


def test_an_unknown_stage_is_shown_as_unknown() -> None:
    assert "✓" not in stage_line(RunState("r"), 118).plain
    assert "stage unknown" in stage_line(RunState("r"), 30).plain


def test_the_header_shows_configuration_cluster_connection_and_job() -> None:
    title, job = header_lines(make_run(), "", STATES["measuring"], 100)
    assert title.plain.startswith("nemotron4 15b fp8 · 64 × H100 · eos   ")
    assert title.plain.endswith("  ● live · log 3 s ago")
    assert job.plain == "job 48123 · RUNNING 04:12 · 8 nodes · our script"


@pytest.mark.parametrize("width", [78, 98, 118])
@pytest.mark.parametrize("name", ["queued", "measuring", "failed", "lost"])
def test_the_notice_of_a_cluster_is_always_in_the_header(width: int, name: str) -> None:
    lines = header_lines(make_run(), NOTICE, STATES[name], width)
    assert NOTICE in lines[0].plain
    assert all(line.cell_length <= width for line in lines)


def test_a_silent_log_is_distinguished_from_a_lost_connection() -> None:
    silent = header_lines(make_run(), "", replace(STATES["measuring"], silent_s=250.0), 100)[0].plain
    assert silent.endswith("● live · log silent 4 min")
    lost = header_lines(make_run(), "", STATES["lost"], 118)[0].plain
    assert lost.endswith("✗ link lost · no answer from eos-login for 12 s, connecting again")
    assert header_lines(make_run(), "", STATES["lost"], 78)[0].plain.endswith("answer from eos-login f…")


def test_the_connection_of_a_finished_run_is_closed() -> None:
    """The state is not read any more, so an age of the log would never change."""
    finished = replace(STATES["measuring"], stage="done", silent_s=0.0)
    assert header_lines(make_run(), "", finished, 118)[0].plain.endswith("  ○ closed")


def test_a_queued_job_shows_the_reason_in_plain_words() -> None:
    job = header_lines(make_run(), "", STATES["queued"], 78)[1].plain
    assert job.startswith("job 48123 · PENDING · 8 nodes · Other jobs have a higher priority.")


def test_remote_text_in_the_header_is_not_markup() -> None:
    job = STATES["queued"].job
    assert job is not None
    odd = replace(STATES["queued"], job=replace(job, reason="[/x] \x1b[31mred"))
    assert "[/x] red" in header_lines(make_run(), "[b]n[/b]", odd, 118)[1].plain


def test_metrics_are_shown_with_the_expected_values() -> None:
    rows = metric_rows(progress(31), make_run().plan, "↓")
    assert metrics_card(rows, 50).plain.splitlines() == [
        "median step        2 s  expected 1.98 s",
        "tokens/s       521,700  expected 529,584",
        "MFU             38.7 %  expected 39.3 %",
        "loss           9.775 ↓",
        "memory           73 GB  of 80 GB",
    ]
    assert "expected" not in metrics_card(rows, 39).plain
    assert "expected" in metrics_card(rows, 40).plain
    assert metrics_strip(rows, 50).plain == "median step 2 s   tokens/s 521,700   MFU 38.7 %"


def test_an_unknown_metric_is_a_dash() -> None:
    values = [value for _, value, _ in metric_rows(Progress(), make_run().plan)]
    assert values == ["–"] * 5


@pytest.mark.parametrize(
    ("before", "now", "trend"),
    [(9.9, 9.8, "↓"), (9.8, 9.9, "↑"), (9.8, 9.801, "→"), (None, 1.0, ""), (1.0, float("nan"), "")],
)
def test_the_direction_of_the_loss(before: float | None, now: float | None, trend: str) -> None:
    assert loss_trend(before, now) == trend


@pytest.mark.parametrize(
    ("losses", "ends"),
    [((12.0, 11.997, 11.994, 11.991, 11.991), "11.99 ↓"), ((12.0, 12.0), "12 →"), ((12.0, 11.0, 11.0), "11 ↓")],
)
async def test_a_slowly_falling_loss_has_a_trend(losses: tuple[float, ...], ends: str) -> None:
    class OneCard(App[None]):
        def compose(self) -> ComposeResult:
            yield Metrics()

    app, state = OneCard(), STATES["measuring"]
    assert state.progress.last is not None
    async with app.run_test():
        card = app.query_one(Metrics)
        card.training_run = make_run()
        for index, loss in enumerate(losses):
            last = state.progress.last._replace(index=index, loss=loss)
            card.run_state = shown = replace(state, progress=replace(state.progress, last=last))
        assert f"loss {ends}" in " ".join(card.draw(make_run(), shown).plain.split())


def test_the_verdict_shows_ratio_reference_rule_and_launch_method() -> None:
    assert verdict_card(STATES["measuring"], "published", "our script").plain.splitlines() == [
        " ✓ PASS   98.5 % of published",
        "median 2.01 s against published 1.98 s, nemotron4@25.04",
        "judged by: last step · our script",
        "So far: median of 26 steps after 5 warm-up steps, ± 0.4 %.",
    ]
    strip = verdict_strip(STATES["measuring"], "published", "direct", 78).plain
    assert strip == "so far  ✓ PASS   98.5 % of published   median 2.01 s   last step · direct"


def test_a_final_verdict_is_not_called_so_far() -> None:
    assert verdict_strip(STATES["done"], "published", "direct", 78).plain.startswith(" ✓ PASS ")


def test_the_card_of_a_run_without_a_verdict_shows_the_reason() -> None:
    state = RunState("r", no_verdict="No verdict: there is no expected step time.")
    assert verdict_card(state, "expected", "direct").plain == "No verdict: there is no expected step time."
    assert verdict_strip(state, "expected", "direct", 20).plain == "No verdict: there i…"


@pytest.mark.parametrize(("result", "glyph"), [("PASS", "✓"), ("WARN", "!"), ("FAIL", "✗")])
def test_each_result_has_a_word_and_a_glyph(result: VerdictResult, glyph: str) -> None:
    verdict = STATES["measuring"].verdict
    assert isinstance(verdict, Verdict)
    state = replace(STATES["measuring"], verdict=replace(verdict, result=result))
    assert verdict_card(state, "published", "direct").plain.startswith(f" {glyph} {result} ")


DAY_S = 86_400.0


@pytest.mark.parametrize("jump_s", [-7200.0, 7200.0, -400 * DAY_S, 400 * DAY_S])
def test_a_clock_that_jumps_gives_no_negative_times_and_is_forgotten_after_some_steps(jump_s: float) -> None:
    run, began, shown = make_run(), 1_790_000_000.0, list[RunState]()
    reducer = RunReducer(run, threshold=THRESHOLD)

    def read(steps: int, at: float) -> LogRead:
        progress = fold(Progress(steps_total=200), [Step(index, 200, 2.0) for index in range(steps)], run.plan)
        return LogRead("log", 100 * steps, grew_at=at, read_at=at, started=True, progress=progress)

    reducer.take(JobUpdated(Job("42", "pretrain", "RUNNING")))
    reducer.take(LinkChanged("live"))
    for steps in range(10, 60):
        now = began + 2.0 * steps + (jump_s if steps >= 20 else 0.0)
        shown.append(reducer.state(now))  # the clock has jumped, and the log has not been read since
        reducer.take(read(steps, now))
        shown.append(reducer.state(now))
    for state in shown:
        assert state.silent_s >= 0
        assert state.eta_s is None or state.eta_s >= 0
        assert "-" not in link_text(state).plain
        assert "-" not in stage_line(state, 30).plain.replace("warm-up", "")
    assert (shown[-1].silent_s, shown[-1].eta_s) == (0.0, (200 - 59) * 2.0)
