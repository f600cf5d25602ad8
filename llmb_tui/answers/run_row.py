"""`RunRow`: a run in any table of runs, from any source of its figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from llmb_tui.answers.table import State
from llmb_tui.cluster.job_words import wait_word
from llmb_tui.language.labels import run_label
from llmb_tui.language.states import Label, Method, VerdictResult, row_label, state_label
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.watch.log_facts import CheckpointTime
from llmb_tui.watch.report import label_of, state_word, verdict_reasons, waiting_job
from llmb_tui.watch.state import BAD_ENDS
from llmb_tui.watch.verdict import rule_s, rule_words

if TYPE_CHECKING:
    from llmb_tui.analysis.result import Figures, RunResult
    from llmb_tui.analysis.statistics import SampleStatistics
    from llmb_tui.plan.plan import Plan
    from llmb_tui.suites.suite_plan import PlannedRow
    from llmb_tui.suites.suite_progress import RowProgress
    from llmb_tui.watch.state import RunRecord

_SELECTION = ("workload", "release", "size", "gpu", "dtype", "scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """Everything that a table can show of a run. Times are in seconds; None and an empty text are unknown."""

    key: str = ""
    """Name of the run in its suite."""
    id: str = ""
    """Run id, or path of a log; empty for a row of a suite without a run."""
    state: State | None = None
    workload: str | None = None
    release: str | None = None
    size: str | None = None
    gpu: str | None = None
    dtype: str | None = None
    scale: int | None = None
    """Number of GPUs."""
    node_count: int | None = None
    """Planned number of nodes."""
    time_limit: str = ""
    gpu_hours: float | None = None
    """Expected cost of the training steps."""
    expected_s: float | None = None
    low_s: float | None = None
    """Lower end of the band of the expected step time."""
    high_s: float | None = None
    method: Method | None = None
    """Source of the expected step time."""
    published_s: float | None = None
    cluster: str | None = None
    procedure: str | None = None
    job_ids: tuple[str, ...] = ()
    made_at: float = 0.0
    """Unix time of the submission; without a submission, of the log's last line or of the plan."""
    steps_done: int | None = None
    steps_total: int | None = None
    step_time_s: float | None = None
    """Step time by the recipe's rule."""
    rule: str = ""
    median_s: float | None = None
    """Median of the steps after the warm-up."""
    last_s: float | None = None
    """Time of the last step."""
    result: VerdictResult | None = None
    ratio: float | None = None
    """Expected step time / measured step time."""
    against: str | None = None
    reasons: tuple[str, ...] = ()
    """Reasons for the verdict; without a verdict, the reasons why."""
    note: Note = NO_NOTE
    steady: SampleStatistics | None = None
    """Steps in the rule's window; for a rule of the last step, the steps after the warm-up."""
    figures: Figures | None = None
    """Figures by the step time of the rule."""
    logged_tflops_per_gpu: float | None = None
    """Mean of the TFLOPS that the training program logged."""
    loss: str = ""
    """Whether the loss falls, in words."""
    loss_against_first_pct: float | None = None
    checkpoints: tuple[CheckpointTime, ...] = ()
    restarts: int | None = None
    node_list: str | None = None
    upstream: Mapping[str, Any] | None = None
    """JSON object of a result by one of NVIDIA's rules (`analysis.document.upstream_document`)."""

    @property
    def ended_badly(self) -> bool:
        """Whether the job failed or was cancelled; a verdict on its earlier steps does not count for the run."""
        return self.state is not None and self.state.name in BAD_ENDS

    @property
    def configuration(self) -> str | None:
        """Workload and GPUs: `nemotron4 15b fp8 · 64 × H100`."""
        if self.workload and self.size and self.dtype and self.scale and self.gpu:
            return run_label(self.workload, self.size, self.dtype, self.scale, self.gpu)
        return None

    @property
    def of_published_pct(self) -> float | None:
        """Speed of the run in per cent of its published row."""
        return 100 * self.published_s / self.step_time_s if self.published_s and self.step_time_s else None


def row_from_document(document: Mapping[str, Any]) -> RunRow:
    """Row of a run's JSON object, with or without the key `result`: from `jobs`, `results` or any log."""
    selection, state, verdict = document["selection"] or {}, document["state"], document["verdict"]
    values: dict[str, Any] = {name: selection.get(name) for name in _SELECTION}
    if result := document.get("result"):
        values |= _result_values(result)
    return RunRow(
        id=document["id"],
        state=State(state, state_label(state)) if state else None,
        **values,
        cluster=document["cluster"],
        procedure=document["procedure"],
        job_ids=tuple(document["job_ids"]),
        made_at=document["submitted_at"] or 0.0,
        steps_done=document["steps_done"],
        steps_total=document["steps_total"],
        step_time_s=document["step_time_s"],
        rule=document["rule"],
        median_s=document["median_step_time_s"],
        last_s=document["last_step_time_s"],
        result=verdict["result"],
        ratio=verdict["ratio"],
        against=verdict["against"],
        reasons=tuple(verdict["reasons"]),
        note=Note(document.get("note", ""), tuple(document.get("tags", ()))),
    )


def _result_values(result: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the key `result` of a run's JSON object."""
    from llmb_tui.analysis.result import Figures  # noqa: PLC0415 - the list of runs opens without it
    from llmb_tui.analysis.statistics import SampleStatistics  # noqa: PLC0415 - as above

    estimate, published, loss = (result[name] or {} for name in ("estimate", "published", "loss"))
    logged = result["logged_tflops_per_gpu"]
    return {
        "expected_s": estimate.get("step_time_s"),
        "low_s": estimate.get("low_s"),
        "high_s": estimate.get("high_s"),
        "method": estimate.get("method"),
        "published_s": published.get("step_time_s"),
        "steady": SampleStatistics(**result["steady"]) if result["steady"] else None,
        "figures": Figures(**{field.name: result[field.name] for field in fields(Figures)})
        if result["tokens_per_s"] is not None
        else None,
        "logged_tflops_per_gpu": logged["mean"] if logged else None,
        "loss": loss.get("words", ""),
        "loss_against_first_pct": (loss.get("against_first") or {}).get("last_pct"),
        "checkpoints": tuple(CheckpointTime(**checkpoint) for checkpoint in result["checkpoints"]),
        "restarts": result["restarts"],
        "node_list": result["nodes"],
        "upstream": result.get("upstream"),
    }


def row_from_record(record: RunRecord, note: Note = NO_NOTE) -> RunRow:
    """Row of a run without `steady` and `figures`, which need all of its step times."""
    return RunRow(**_record_values(record), note=note)


def row_from_result(result: RunResult, note: Note = NO_NOTE) -> RunRow:
    """Row of a run with its figures, and with its checkpoints and its loss if its log was read."""
    loss = result.loss
    return RunRow(
        **_record_values(result.record),
        note=note,
        steady=result.steady,
        figures=result.figures,
        loss=loss.words if loss else "",
        checkpoints=result.checkpoints,
        restarts=result.restarts,
        node_list=result.job.node_list if result.job else None,
    )


def row_from_plan(planned: PlannedRow) -> RunRow:
    """Row of a suite's run before it is submitted."""
    row = planned.row
    return RunRow(
        **_plan_values(planned.plan),
        key=row.key,
        id=row.run_id,
        state=State("not sent", row_label("not sent")),
        procedure=row.procedure,
    )


def row_from_progress(progress: RowProgress) -> RunRow:
    """Row of a suite's run; only a finished run has a step time and a verdict."""
    row, record = progress.planned.row, progress.record
    values = _record_values(record) if record else _plan_values(progress.planned.plan)
    names = {"id": row.run_id if record else "", "procedure": row.procedure, "key": row.key}
    outcome = {"step_time_s": progress.step_time_s, "result": progress.result}
    return RunRow(**{**values, **names, **outcome, "state": _state(progress.state, progress.label, record)})


def _plan_values(plan: Plan) -> dict[str, Any]:
    selection, estimate = plan.selection, plan.estimate
    values = {name: getattr(selection, name) for name in _SELECTION}
    values |= {"node_count": plan.nodes, "time_limit": plan.time_limit, "gpu_hours": plan.gpu_hours}
    values["published_s"] = plan.published.step_time_s if plan.published else None
    if estimate is not None:
        values |= {"expected_s": estimate.step_time_s, "low_s": estimate.low_s, "high_s": estimate.high_s}
        values["method"] = estimate.method
    return values


def _record_values(record: RunRecord) -> dict[str, Any]:
    run, state = record.run, record.state
    progress, verdict = state.progress, state.verdict
    return {
        **_plan_values(run.plan),
        "id": run.id,
        "state": _state(state_word(run, state), label_of(run, state), record),
        "cluster": run.cluster,
        "procedure": run.procedure,
        "job_ids": run.job_ids,
        "made_at": run.submitted_at or record.log_grew_at or run.created_at,
        "steps_done": progress.steps_done,
        "steps_total": progress.steps_total if progress.steps_total is not None else run.plan.steps,
        "step_time_s": rule_s(run.plan, run.rule, progress),
        "rule": rule_words(run.rule),
        "median_s": progress.median_s,
        "last_s": progress.last.step_time_s if progress.last else None,
        "result": verdict.result if verdict else None,
        "ratio": verdict.ratio if verdict else None,
        "against": verdict.against if verdict else None,
        "reasons": verdict_reasons(run, state),
    }


def _state(name: str, label: Label, record: RunRecord | None) -> State:
    """State of a run; a queued one has Slurm's word for why it waits: `queued (Priority)`."""
    waiting = waiting_job(record.run, record.state) if record else None
    word = wait_word(waiting) if waiting else ""
    return State(name, label._replace(word=f"{label.word} ({word})") if word else label)
