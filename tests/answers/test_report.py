"""A report has the numbers of the result and no external resources, and all markup in its texts is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from llmb_tui.analysis.result import RunResult
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import (
    Banner,
    Bullets,
    Fact,
    Facts,
    Grid,
    Listing,
    Section,
    Text,
    pictures,
    remarks,
)
from llmb_tui.answers.report import report
from llmb_tui.answers.table import Table, bare
from llmb_tui.answers.writers.html import html
from llmb_tui.answers.writers.markdown import escaped, markdown
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.evidence.reported_run import ReportedRun
from llmb_tui.language import quantities
from llmb_tui.language.states import Stage
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.plan.over_scale import over_scale
from llmb_tui.plan.selection import Overrides, ProcedureId, RunOptions
from llmb_tui.suites.suite import make_suite
from llmb_tui.suites.suite_plan import plan_suite
from llmb_tui.suites.suite_progress import progress_of
from llmb_tui.watch.log_facts import LogFacts
from llmb_tui.watch.state import RunRecord, RunState
from tests.kit.answers import answer_of, banners, sections
from tests.kit.results import make_result, profiled, with_changes
from tests.kit.runs import CATALOG, CREATED_AT, NEMOTRON, make_spec

NOW = CREATED_AT + 9000
NO_MEMORY = Diagnosis("CUDA out of memory", "A GPU ran out of memory.", "Take a larger TP.")
VOID = {"meta", "br", "hr", "img", "input", "link", "rect", "path", "circle"}


class Page(HTMLParser):
    """Parser that checks that elements are closed in order, and collects tags, links, ids and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "srcset", "action", "data")]
        self.ids += [values["id"] or ""] if "id" in values else []
        assert not any(name.startswith("on") for name in values)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "desc"} & set(self.open):
            self.words.append(data)


def reported(result: RunResult, **changes: object) -> ReportedRun:
    spec = replace(make_spec(result.id), overridden=(("NCCL_NVLS_ENABLE", "0", "1"),), otherwise=("vboost off",))
    recipe = CATALOG.recipe(result.plan.selection.workload, result.plan.selection.release)
    return replace(ReportedRun(with_changes(result, spec=spec), 0.95, recipe.title), **changes)  # type: ignore[arg-type]


RUN = make_result("run1", [41.2, *(1.97 + 0.01 * (at % 4) for at in range(49))], nodes="cn[001-008]")
ONE = reported(
    RUN,
    script="#!/bin/bash\nsrun python pretrain.py\n",
    script_sha256="ab" * 32,
    log_sha256="cd" * 32,
    note="#weekly after the firmware",
    over_scale=over_scale(CATALOG, NEMOTRON),
    other_scales=(RUN,),
    repeats=(RUN,),
)
MADE = report([ONE], NOW)


def facts(made: Answer) -> dict[str, str]:
    blocks = [block for section in sections(made) for block in section.blocks]
    return {fact.label: fact.value for block in blocks if isinstance(block, Facts) for fact in block.facts}


def section(made: Answer, title: str) -> str:
    (blocks,) = [each.blocks for each in sections(made) if each.title == title]
    return " ".join(" ".join(block.items) for block in blocks if isinstance(block, Bullets))


def test_a_report_has_the_numbers_of_the_result() -> None:
    assert RUN.figures is not None
    assert RUN.verdict is not None
    assert RUN.plan.estimate is not None
    figures, page = RUN.figures, Page(html(MADE))
    assert figures.tflops_per_gpu is not None
    assert figures.mfu_pct is not None
    assert figures.days_per_1t_tokens is not None
    assert RUN.step_time_s is not None
    for text in (
        quantities.tokens_per_s(figures.tokens_per_s),
        quantities.tflops(figures.tflops_per_gpu),
        quantities.percent_digits(figures.mfu_pct),
        quantities.days_digits(figures.days_per_1t_tokens),
    ):
        assert text in page.text
        assert text in markdown(MADE)
    for text in (
        quantities.step_time(RUN.step_time_s),
        quantities.percent(100 * RUN.verdict.ratio),
        "published 1.98 s",
        "cn[001-008]",
    ):
        assert text in page.text
    table = next(block for block in sections(MADE)[0].blocks if isinstance(block, Grid)).table
    assert tuple(map(bare, table.rows[0]))[:3] == ("step time, s", RUN.step_time_s, RUN.plan.estimate.step_time_s)
    assert bare(table.rows[0][3]) == pytest.approx(100 / RUN.verdict.ratio)


def test_the_page_parses_and_has_no_external_resources() -> None:
    page = Page(html(MADE))
    assert page.links == []
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(page.tags)
    assert re.findall(r"url\(|@import|https?:", html(MADE)) == []
    assert "default-src 'none'" in html(MADE)
    assert {"header", "main", "section", "table", "caption", "figure", "figcaption", "details", "footer"} <= {
        *page.tags
    }
    assert page.tags.count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    assert "prefers-color-scheme:dark" in html(MADE)
    assert "@media print" in html(MADE)


def test_configuration_environment_and_deviations() -> None:
    known = facts(MADE)
    assert known["GPUs"] == "64 × H100, 8 nodes of 8"
    assert known["Container"] == "nvidia/nemo:25.02.01"
    assert known["Digest of the container"].startswith("unknown")
    assert known["Script, SHA-256"] == "ab" * 32
    assert known["Note"] == "#weekly after the firmware"
    deviations = section(MADE, "Deviations from the published procedure")
    assert "NCCL_NVLS_ENABLE is 1, from the cluster's profile; the recipe has 0." in deviations
    assert "vboost off" in deviations
    assert "not by NVIDIA's launch scripts" in deviations
    numbers = section(MADE, "Calculation of the numbers")
    assert "256 sequences of 4,096 tokens" in numbers
    assert "3.85e14 FLOPs" in numbers


def test_a_doubtful_run_has_its_reasons() -> None:
    answer = report([reported(make_result("p", 2.0, profiled()))], NOW)
    assert banners(answer)[0].result == "WARN"
    assert "profiled" in section(answer, "Verdict and its basis")
    overridden = make_result(
        "h", 2.0, replace(NEMOTRON, overrides=Overrides(tp=4), options=RunOptions(save_checkpoint=True))
    )
    deviations = section(report([reported(overridden)], NOW), "Deviations from the published procedure")
    assert "TP is a manual override: 4." in deviations
    assert "save checkpoint" in deviations


def test_a_run_without_a_verdict_has_the_reason() -> None:
    broken = make_result(
        "b",
        [],
        stage="failed",
        verdict=None,
        no_verdict="No verdict: the run ended before its first step.",
        failure=NO_MEMORY,
    )
    answer = report([reported(broken)], NOW)
    assert banners(answer) == (Banner("", "The run ended before its first step. A GPU ran out of memory."),)
    assert Page(html(answer)).text.count("A GPU ran out of memory.") >= 1
    assert "**No verdict** – The run ended" in markdown(answer)


def interrupted(run_id: str, stage: Stage = "failed", seconds: float = 1.98) -> ReportedRun:
    """A run that ended after the steps that its rule needs, so that it has a verdict."""
    return reported(make_result(run_id, seconds, stage=stage, steps_done=47, failure=NO_MEMORY))


@pytest.mark.parametrize(
    ("stage", "ending"),
    [
        ("failed", "The run failed after 47 of 50 steps. A GPU ran out of memory."),
        ("timeout", "The run timed out after 47 of 50 steps. A GPU ran out of memory."),
        ("node_fail", "The run lost its nodes after 47 of 50 steps. A GPU ran out of memory."),
        ("cancelled", "The run was cancelled after 47 of 50 steps."),
    ],
)
def test_a_failed_run_starts_with_its_end_and_has_no_verdict(stage: Stage, ending: str) -> None:
    run = interrupted("b", stage)
    answer = report([run], NOW)
    (head,) = banners(answer)
    assert head.result == ""
    assert head.words.startswith(f"{ending} Until then it was PASS, fast enough: 100.0 % of the expected speed.")
    basis = next(part for part in sections(answer) if part.title == "Verdict and its basis")
    assert isinstance(basis.blocks[0], Text)
    assert basis.blocks[0].text.startswith(f"{ending} Until then PASS: the expected step time divided by")
    several = report([run, reported(make_result("done"))], NOW)
    summary = next(block for block in sections(several)[0].blocks if isinstance(block, Grid)).table
    rows = [dict(zip(summary.headings, map(bare, row), strict=True)) for row in summary.rows]
    assert [(row["verdict"], row["speed %"]) for row in rows] == [(None, None), ("PASS", 100.0)]


def test_failed_runs_among_several_are_counted_and_prevent_a_pass() -> None:
    done, slow = (reported(make_result(run_id, seconds)) for run_id, seconds in (("done", 1.98), ("slow", 2.4)))
    heads = [banners(report(runs, NOW))[0] for runs in ([interrupted("a"), interrupted("b")], [done, interrupted("a")])]
    assert heads == [
        Banner("", "2 runs: 2 failed or cancelled."),
        Banner("", "2 runs: 1 PASS, 1 failed or cancelled."),
    ]
    assert banners(report([slow, interrupted("a", seconds=2.4)], NOW)) == (
        Banner("FAIL", "2 runs: 1 FAIL, 1 failed or cancelled."),
    )


RUNAI = RunaiSpec(
    "run1", "e", "w", "distributed", "p", None, 8, 8, "00:30:00", "nvcr.io/nvidia/nemo@sha256:" + "0" * 64, (), "",
    None, None, (), (), notes=("no NUMA binding",),
)  # fmt: skip


@pytest.mark.parametrize(
    ("procedure", "spec", "deviation"),
    [
        ("runai", RUNAI, "a Run:ai workload"),
        ("runai", RUNAI, "No NUMA binding."),
        ("llmb", None, "settings are only partly known"),
        ("upstream", None, "NVIDIA's scripts, unchanged"),
    ],
)
def test_each_launch_method_has_its_deviations(procedure: ProcedureId, spec: RunaiSpec | None, deviation: str) -> None:
    run = replace(ONE, result=with_changes(ONE.result, procedure=procedure, spec=spec))
    answer = report([run], NOW)
    assert deviation in section(answer, "Deviations from the published procedure")
    assert ("Digest of the container" in facts(answer)) == (spec is None)
    assert html(answer)
    assert markdown(answer)


def test_a_simulated_run_is_named_with_its_verdict() -> None:
    simulated = replace(ONE, result=replace(RUN, facts=LogFacts("nemo2", (), (), 0, simulated=True)))
    answer = report([simulated], NOW)
    assert "no GPU trained anything" in banners(answer)[0].words
    assert "simulated" in answer.subtitle
    several = report([simulated, ONE], NOW)
    assert banners(several)[0].words == "2 runs: 2 PASS. Simulated: no GPU trained anything."


def several() -> Sequence[ReportedRun]:
    results = [
        make_result(f"r{index}", seconds, replace(NEMOTRON, scale=gpus), submitted_at=CREATED_AT + 900 * index)
        for index, (gpus, seconds) in enumerate([(16, 1.98), (64, 2.0), (64, 2.01), (64, 2.02), (256, 2.4)])
    ]
    return [reported(result, over_scale=over_scale(CATALOG, result.plan.selection)) for result in results]


def test_several_runs_have_a_summary_and_a_comparison() -> None:
    answer = report(several(), NOW)
    assert answer.title == "5 runs"
    assert banners(answer) == (Banner("FAIL", "5 runs: 4 PASS, 1 FAIL."),)
    summary = next(block for block in sections(answer)[0].blocks if isinstance(block, Grid))
    assert [row[0] for row in summary.table.rows] == ["r0", "r1", "r2", "r3", "r4"]
    assert "The same for all: release 25.04, cluster eos, launch our script, state done." in summary.caption
    assert {picture.name for picture in pictures(answer.make_blocks())} >= {
        "scale-1",
        "efficiency-1",
        "r0-steps",
        "r4-steps",
    }
    assert len({picture.name for picture in pictures(answer.make_blocks())}) == len(pictures(answer.make_blocks()))
    page = Page(html(answer))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids), "links lead into the page itself"
    assert len(page.ids) == len(set(page.ids))
    assert "noise" in page.text


def test_runs_that_are_not_comparable_are_refused_with_the_reason() -> None:
    results = [make_result("a", 2.0), make_result("b", 2.7, replace(NEMOTRON, dtype="bf16", size="340b", scale=128))]
    answer = report([reported(result) for result in results], NOW)
    refusal = remarks(answer.make_blocks())[0]
    assert (refusal.label.word, refusal.label.tone) == ("not comparable", "bad")
    assert refusal.text.startswith("The models differ")
    assert "✗ not comparable: The models differ" in Page(html(answer)).text


def test_a_suite_has_its_purpose_and_the_state_of_each_row() -> None:
    run = several()[0]
    suite = replace(make_suite("weekly", "eos", [(NEMOTRON, "direct")] * 2, kind="acceptance"), id="s1")
    rows = tuple(replace(row, run_id=run_id) for row, run_id in zip(suite.rows, (run.result.id, "later"), strict=True))
    profile = SlurmProfile("eos", "eos.example.com", "acct", "batch", "/lustre/llmb")
    plan = plan_suite(replace(suite, rows=rows), CATALOG, profile, Policy())
    state = RunState(run.result.id, "done", verdict=run.result.verdict)
    unfinished = progress_of(plan, {run.result.id: RunRecord(run.result.run, state)})
    answer = report([run], NOW, [unfinished])
    assert answer.title == "Suite weekly"
    assert banners(answer) == (Banner("PASS", "1 run: 1 PASS."),)
    assert "#2" in Page(html(answer)).text
    assert facts(answer)["Progress"].startswith("1 of 2 runs done: 1 PASS")
    finished = progress_of(plan, {row.run_id: RunRecord(run.result.run, state) for row in rows})
    assert banners(report([run], NOW, [finished])) == (Banner("PASS", "2 of 2 configurations pass."),)
    assert "no verdict yet" in banners(report([], NOW, [progress_of(plan, {})]))[0].words


HOSTILE = "<script>alert(1)</script>\"'&<!-- ``` **b** [x](javascript:1) | \x1b]0;x\x07\u202e"
EVIL = answer_of(
    HOSTILE,
    Banner("PASS", HOSTILE),
    Section(
        HOSTILE,
        (
            Text(HOSTILE),
            Bullets((HOSTILE, "- a", "1. b", "# c")),
            Facts((Fact(HOSTILE, HOSTILE), Fact("exact", "a `b` ``c``", exact=True))),
            Grid(HOSTILE, Table.of(("", "b"), [(HOSTILE, HOSTILE)])),
            Listing(HOSTILE, f"{HOSTILE}\n```\n</code></pre><script>"),
        ),
    ),
    subtitle=HOSTILE,
    made=HOSTILE,
)


def test_hostile_text_is_escaped() -> None:
    text = html(EVIL)
    page = Page(text)
    assert "script" not in page.tags
    assert "<script" not in text
    assert "<!--" not in text
    assert text.count("alert(1)") >= 9
    for written in (text, markdown(EVIL)):
        assert "\x1b" not in written
        assert "\u202e" not in written


def test_markdown_escapes_markup() -> None:
    text = markdown(EVIL)
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
    assert not re.search(r"(?<!\\)<script", outside)
    assert not re.search(r"(?<!\\)\[x(?<!\\)\]\(", outside)
    assert "\\*\\*b\\*\\*" in outside
    assert "- \\- a\n- 1. b\n" not in outside
    assert "```` a `b` ``c``" not in outside
    assert "``` a `b` ``c`` ```" in outside
    (row,) = [line for line in outside.splitlines() if line.startswith("| \\<script")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert escaped("# c") == "\\# c"
    assert escaped("1. b") == "1\\. b"


def test_a_fence_is_longer_than_the_fences_in_its_text() -> None:
    text = markdown(answer_of("t", Section("x", (Listing("script", "a\n````\nb"),))))
    assert "`````text\na\n````\nb\n`````" in text


def test_the_json_document_has_the_same_content() -> None:
    made = MADE.make_document()
    assert made["verdicts"][0]["result"] == "PASS"
    kinds = {block["kind"] for part in made["sections"] for block in part["blocks"]}
    assert kinds == {"table", "facts", "chart", "text", "list", "listing"}
    (steps,) = [block for part in made["sections"] for block in part["blocks"] if block.get("name") == "steps"]
    assert steps["series"][0]["points"][0] == [0, 41.2]


def test_a_job_has_its_duration() -> None:
    job = Job("48123", "run", "COMPLETED", nodes=8, elapsed_s=311.0, node_list="cn[001-008]")
    assert facts(report([reported(with_changes(RUN, job=job))], NOW))["Duration of the job"] == "311 s"
