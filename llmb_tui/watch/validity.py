"""`validity`: whether a run was what it claims to be, check by check. A number counts only if it was. Pure.

Each rule fails only on a statement of the log or of a file kept with the run. Without one the check is unknown and
names the input that it needs. docs/results.md has the rules by log format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from llmb_tui.catalog.gpu_model import gpu_model
from llmb_tui.catalog.recipe import LogFormatId, ResultRule
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.quantities import count, four_digits, plain_number
from llmb_tui.language.states import validity_label
from llmb_tui.language.text import plural
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.log_formats.registry import LOG_FORMATS
from llmb_tui.watch.progress import WARM_UP_STEPS
from llmb_tui.watch.state import BatchSize, CheckId, Progress, Statement, StatementKind, Step, ValidityCheck
from llmb_tui.watch.statements import statements

_LOG, _NETWORK, _ACCOUNTING = "log", "network.txt", "accounting"
_ROUNDING = 0.03
"""NeMo 1's bar rounds its totals to three digits: a sound total may be off by this part."""
_NVLINK_NODES = 18
"""Nodes of one NVLink domain of GB200 and GB300 NVL72."""
_FP8_RECIPES = {"delayed": "delayed", "current": "tensorwise", "mx": "mxfp8"}
"""Megatron Core's names of the precision's variants (`TransformerConfig.fp8_recipe`)."""
_NOTHING = ("null", "false", "0", "1")
"""JSON values by which a recipe turns an option, or a dimension of the layout, off."""
_NEEDS: dict[CheckId, str] = {
    "loss": "a loss in the step lines",
    "steps": "Megatron's step lines, which count skipped iterations; NeMo's do not",
    "complete": "the steps that count",
    "batch": "the global batch size or the consumed samples in the step lines",
    "ranks": "a line `Starting with N processes` or `DP: …; TP: …` in the log",
    "gpu": "a line of the log that names the GPUs, or typed GPUs in the scheduler's accounting",
    "transport": "NCCL's lines, which a run of our script keeps in network.txt and a traced run writes into its log",
    "precision": "the settings that our script prints into the log",
    "container": "versions in the log, and those that the preset names of this container",
    "settings": "the settings that our script prints into the log",
    "starts": "the steps that count",
}


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Evidence that this machine keeps of a run besides its log."""

    network: tuple[Statement, ...] = ()
    """Statements of NCCL, by the files that the first rank of each node wrote."""
    gpus: tuple[tuple[str, str], ...] = ()
    """(GPU type, line) of the scheduler's accounting."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of NeMo's recipe that were sent with the run."""


NO_FILES = RunFiles()


def run_files(network: str, gpus: Iterable[tuple[str, str]], launch: str) -> RunFiles:
    """Read the texts of `network.txt` and `launch.json`; an unreadable one states nothing.

    `gpus`: GPU types in the accounting, each with its line.
    """
    try:
        sent = parse_json(launch)["settings"] if launch else {}
    except (ValueError, LookupError, TypeError):
        sent = {}
    return RunFiles(tuple(statements(network.encode())), tuple(gpus), sent if isinstance(sent, dict) else {})


@dataclass(frozen=True, slots=True)
class _Window:
    """The steps that count by the recipe's rule, 0-based, as far as the run has made them."""

    first: int
    last: int
    reached: bool
    """At least one of them was made."""
    passed: bool
    """All of them were made, or no more will come."""

    def holds(self, index: int) -> bool:
        return self.first <= index <= self.last

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def validity(  # noqa: PLR0913 - all evidence about a run
    plan: Plan, rule: ResultRule, log_format: LogFormatId, progress: Progress, files: RunFiles, *, finished: bool
) -> tuple[ValidityCheck, ...]:
    """All checks, in the order of the contract; none before the first step. `finished`: no further step will come."""
    if not progress.steps_done or progress.last is None:
        return ()
    window = _window(plan, rule, progress, finished=finished)
    return (
        _loss(progress, window),
        _steps(progress, window),
        _complete(progress, window, finished=finished),
        _batch(plan, log_format, progress, window),
        _ranks(plan, progress),
        _gpu(plan, progress, files),
        _transport(plan, progress, files),
        _precision(plan, progress),
        _container(plan, progress),
        _settings(plan, progress, files),
        _starts(progress, window),
    )


def failed(checks: Sequence[ValidityCheck]) -> list[ValidityCheck]:
    """Failed checks; the step time of a run with one does not measure its configuration."""
    return [check for check in checks if check.outcome == "failed"]


def failure_words(check: ValidityCheck) -> str:
    """A failed check as a sentence, with the line that it rests on."""
    return f"Check `{check.id}` {check_words(check)}" + ("" if check.line else ".")


def check_words(check: ValidityCheck) -> str:
    """Text of a check's outcome in a table of checks."""
    more = ""
    if check.outcome == "failed":
        more = f"; expected: {check.expected}" + (f". In {check.source}: `{check.line}`" if check.line else "")
    return f"{validity_label(check.outcome).word}: {check.found}{more}"


def unknown_words(checks: Sequence[ValidityCheck]) -> str:
    """The checks that could not be made, each with the input that it needs; empty if there are none."""
    unknown = [f"{check.id} ({check.found})" for check in checks if check.outcome == "unknown"]
    return f"Not checked: {'; '.join(unknown)}." if unknown else ""


def _window(plan: Plan, rule: ResultRule, progress: Progress, *, finished: bool) -> _Window:
    total = progress.steps_total if progress.steps_total is not None else plan.steps
    newest = progress.steps_done - 1
    if rule.kind == "last":
        return _Window(newest, newest, True, finished or progress.steps_done >= total > 0)
    first = rule.first or 0
    last = first if rule.last is None else rule.last
    if total <= last:  # too short for the rule: the steps after the warm-up are all that there is
        first, last = min(WARM_UP_STEPS, total - 1), total - 1
    return _Window(first, last, newest >= first, newest >= last or finished)


def _ok(check: CheckId, found: str, expected: str) -> ValidityCheck:
    return ValidityCheck(check, "ok", found, expected)


def _unknown(check: CheckId, expected: str, needs: str = "") -> ValidityCheck:
    return ValidityCheck(check, "unknown", f"needs {needs or _NEEDS[check]}", expected)


def _failed(check: CheckId, found: str, expected: str, line: str, source: str = _LOG) -> ValidityCheck:
    return ValidityCheck(check, "failed", found, expected, line, source if line else "")


def _is_megatron(step: Step) -> bool:
    """Whether a step's line is one of Megatron-LM or Megatron-Bridge."""
    return step.skipped is not None or step.loss_scale is not None


def _loss(progress: Progress, window: _Window) -> ValidityCheck:
    expected = "a finite loss in each step that counts"
    unstable = [step for step in progress.untrained if step.grad_norm is not None and not isfinite(step.grad_norm)]
    if unstable:
        return _failed(
            "loss", f"the gradient norm of step {unstable[0].index} is not finite", expected, unstable[0].line
        )
    if not window.reached:
        return _unknown("loss", expected, "the steps that count")
    of_window = [step for step in progress.untrained if window.holds(step.index)]
    infinite = [step for step in of_window if step.loss is not None and not isfinite(step.loss)]
    if infinite:
        return _failed("loss", f"{_share(infinite, window)} a loss that is not finite", expected, infinite[0].line)
    without_loss = [step for step in of_window if step.loss is None]
    return _without_loss(without_loss, window, expected) if without_loss else _ok("loss", "finite", expected)


def _without_loss(without_loss: Sequence[Step], window: _Window, expected: str) -> ValidityCheck:
    """The loss check for lines without a loss: Megatron omits an average that is not greater than zero, such as NaN."""
    if not _is_megatron(without_loss[0]):
        return _unknown("loss", expected)
    suspect = next((step for step in without_loss if step.skipped or step.not_a_number), None)
    if suspect is not None or len(without_loss) >= window.count:
        return _failed("loss", f"{_share(without_loss, window)} no loss", expected, (suspect or without_loss[0]).line)
    return _ok("loss", f"finite, {plural(len(without_loss), 'step')} without one", expected)


def _share(steps: Sequence[Step], window: _Window) -> str:
    """Number of the steps that count, as the beginning of a sentence."""
    if window.count == 1:
        return "the step that counts has"
    return f"{len(steps)} of the {window.count} steps that count {'has' if len(steps) == 1 else 'have'}"


def _steps(progress: Progress, window: _Window) -> ValidityCheck:
    expected = "no skipped and no NaN iteration"
    last = progress.last
    if last is None or last.skipped is None:
        return _unknown("steps", expected)
    skipped = [step for step in progress.untrained if step.skipped]
    counted = [step for step in skipped if window.reached and window.holds(step.index)]
    # Without dynamic loss scaling no sound step is skipped, not even one before the steps that count.
    unscaled = [step for step in skipped if step.loss_scale == 1.0]
    not_a_number = [step for step in progress.untrained if step.not_a_number and window.holds(step.index)]
    if counted:
        return _failed("steps", f"{_share(counted, window)} skipped iterations", expected, counted[0].line)
    if not_a_number:
        return _failed("steps", f"{_share(not_a_number, window)} NaN iterations", expected, not_a_number[0].line)
    if unscaled:
        found = f"step {unscaled[0].index} has skipped iterations at loss scale 1"
        return _failed("steps", found, expected, unscaled[0].line)
    return _ok("steps", "none", expected)


def _complete(progress: Progress, window: _Window, *, finished: bool) -> ValidityCheck:
    expected = "a step time of each step that counts"
    if not window.reached or not window.passed:
        return _unknown("complete", expected, "the steps that count, which have not all been made")
    timed = {index for index, _ in progress.step_times_s if window.holds(index)}
    missing = window.count - len(timed)
    if missing:
        found = f"{missing} of the {window.count} steps that count are missing in the log"
        return _failed("complete", f"{found}{_cut(progress)}", expected, "")
    last = progress.last
    if finished and window.count > 1 and last is not None and _is_megatron(last) and not progress.whole:
        found = f"the log ends at step {progress.steps_done} of {progress.steps_total}"
        return _failed("complete", found, "the last step, which the rule of Megatron-Bridge needs", last.line)
    return _ok("complete", f"{plural(window.count, 'step')}", expected)


def _cut(progress: Progress) -> str:
    """Reason why the log may lack steps that the run made; empty if there is none."""
    if progress.of_next_start:
        return f"; the job was started again, and `{progress.before}` is the log of its previous start"
    earlier = progress.earlier_lines
    return f"; the log was replaced while it was copied, and {earlier}" if earlier else ""


def _batch(plan: Plan, log_format: LogFormatId, progress: Progress, window: _Window) -> ValidityCheck:
    planned = plan.parallelism.gbs
    expected = f"a global batch of {count(planned)}"
    entries = [(entry, entry.batch) for entry in _in_window(progress.batches, window) if entry.batch is not None]
    for entry, batch in entries:
        if batch != planned:
            return _failed("batch", f"a global batch of {plain_number(batch)}", expected, entry.line)
        if entry.samples is not None and entry.samples != planned:
            line = progress.last.line if progress.last else ""
            return _failed("batch", f"{plain_number(entry.samples)} samples between two steps", expected, line)
    if entries:
        return _ok("batch", count(planned), expected)
    averaged = LOG_FORMATS[log_format].counts_only_samples
    return _average_batch(planned, progress, expected) if averaged else _unknown("batch", expected)


def _average_batch(planned: int, progress: Progress, expected: str) -> ValidityCheck:
    """Batch check at the last step by the total of NeMo 1's bar, which is rounded."""
    last = progress.last
    if last is None or last.consumed_samples is None or progress.first_index:
        return _unknown("batch", expected)
    if not progress.whole:
        return _unknown("batch", expected, "the last step, at which the bar's total is read")
    samples = last.consumed_samples / (last.index + 1)
    if abs(samples / planned - 1) > _ROUNDING:
        return _failed("batch", f"{four_digits(samples)} samples a step on average", expected, last.line)
    return _ok("batch", f"{four_digits(samples)} samples a step, rounded", expected)


def _in_window(batches: Sequence[BatchSize], window: _Window) -> list[BatchSize]:
    """Entries that apply to a step that counts."""
    if not window.reached:
        return []
    ends = [*(entry.index for entry in batches[1:]), None]
    return [
        entry
        for entry, end in zip(batches, ends, strict=False)
        if entry.index <= window.last and (end is None or end > window.first)
    ]


def _stated(progress: Progress, kind: StatementKind) -> list[Statement]:
    return [fact for fact in progress.statements if fact.kind == kind]


def _ranks(plan: Plan, progress: Progress) -> ValidityCheck:
    gpus = plan.selection.scale
    expected = plural(gpus, "rank")
    found = [(int(fact.value), fact.line) for fact in _stated(progress, "ranks")]
    found += [
        (ranks, fact.line) for fact in _stated(progress, "layout") if (ranks := _ranks_of(fact.value)) is not None
    ]
    if not found:
        return _unknown("ranks", expected)
    ranks, line = next(((ranks, line) for ranks, line in found if ranks != gpus), found[0])
    if ranks != gpus:
        return _failed("ranks", plural(ranks, "rank"), expected, line)
    return _ok("ranks", plural(ranks, "rank"), expected)


def _ranks_of(layout: str) -> int | None:
    """DP × TP × PP × CP of a line such as `DP: 128; TP: 4; PP: 8; CP: 2`; None if it lacks one of them."""
    parts = dict(part.split(": ") for part in layout.split("; "))
    try:
        dp, tp, pp, cp = (int(parts[name]) for name in ("DP", "TP", "PP", "CP"))
    except (KeyError, ValueError):
        return None
    return dp * tp * pp * cp


def _gpu(plan: Plan, progress: Progress, files: RunFiles) -> ValidityCheck:
    wanted = plan.selection.gpu
    expected = f"{wanted.upper()}, whole" if wanted.startswith("gb") else f"{wanted.upper()} SXM, whole"
    named = [(fact.value, fact.line, _LOG) for fact in _stated(progress, "gpu")]
    named += [(name, line, _ACCOUNTING) for name, line in files.gpus]
    known = False
    for name, line, source in named:
        model = gpu_model(name)
        if model.is_slice or model.is_card or model.is_type(wanted) is False:
            return _failed("gpu", name, expected, line, source)
        known = known or model.is_type(wanted) is True
    return _ok("gpu", named[0][0], expected) if known else _unknown("gpu", expected)


def _transport(plan: Plan, progress: Progress, files: RunFiles) -> ValidityCheck:
    expected = "no channel over sockets between nodes"
    if plan.nodes == 1:
        return _ok("transport", "one node", expected)
    sources = [(fact, _LOG) for fact in progress.statements] + [(fact, _NETWORK) for fact in files.network]
    between = [(fact, source) for fact, source in sources if fact.kind == "channel" and _leaves_node(fact.name, plan)]
    networks = [(fact, source) for fact, source in sources if fact.kind == "network"]
    sockets = [(fact, source) for fact, source in between if fact.value == "NET/Socket"]
    if not between and networks and all(fact.value == "Socket" for fact, _ in networks):
        sockets = networks
    if not sockets:
        found = between or networks
        return _ok("transport", found[0][0].value, expected) if found else _unknown("transport", expected)
    fact, source = sockets[0]
    if plan.selection.gpu.startswith("gb") and plan.nodes <= _NVLINK_NODES:
        return _ok("transport", f"{fact.value}; the nodes may share one NVLink domain, which NCCL uses first", expected)
    found_words = f"{fact.value} between ranks {fact.name}" if fact.kind == "channel" else f"network {fact.value}"
    return _failed("transport", found_words, expected, fact.line, source)


def _leaves_node(pair: str, plan: Plan) -> bool:
    """Whether two ranks lie on different nodes: Slurm and torchrun number the ranks node by node."""
    here, there = (int(rank) // plan.gpus_per_node for rank in pair.split(" -> "))
    return here != there


def _precision(plan: Plan, progress: Progress) -> ValidityCheck:
    wanted, variant = plan.selection.dtype, plan.precision_variant
    recipe = _FP8_RECIPES.get(variant or "", "") if wanted == "fp8" else ""
    expected = f"{wanted}{f', {variant} scaling' if variant else ''}"
    printed = {fact.name: fact for fact in _stated(progress, "setting")}
    if not printed or wanted not in ("bf16", "fp8"):
        return _unknown("precision", expected)
    fp8, fp8_recipe = printed.get("trainer.plugins.fp8"), printed.get("trainer.plugins.fp8_recipe")
    trains_fp8 = fp8 is not None and fp8.value != "null"
    if fp8 is not None and trains_fp8 is not (wanted == "fp8"):
        return _failed("precision", f"FP8 is {fp8.value}", expected, fp8.line)
    if fp8 is None and wanted == "fp8":
        return _unknown("precision", expected)
    if trains_fp8 and recipe and fp8_recipe is not None and json_value(fp8_recipe.value) != recipe:
        return _failed("precision", f"FP8 recipe {fp8_recipe.value}", f"{expected} ({recipe})", fp8_recipe.line)
    return _ok("precision", wanted, expected)


def _container(plan: Plan, progress: Progress) -> ValidityCheck:
    wanted = dict(plan.container_versions)
    expected = ", ".join(f"{name} {version}" for name, version in wanted.items()) or (plan.container or "its container")
    compared = [fact for fact in _stated(progress, "version") if fact.name in wanted]
    for fact in compared:
        if _major_minor(fact.value) != _major_minor(wanted[fact.name]):
            return _failed("container", f"{fact.name} {fact.value}", expected, fact.line)
    if not compared:
        return _unknown("container", expected)
    return _ok("container", ", ".join(f"{fact.name} {fact.value}" for fact in compared), expected)


def _major_minor(version: str) -> tuple[str, ...]:
    return tuple(version.split("+", maxsplit=1)[0].split(".")[:2])


def _settings(plan: Plan, progress: Progress, files: RunFiles) -> ValidityCheck:
    wanted = {**_layout_settings(plan), **{name: value for name, value in files.settings.items() if _is_plain(value)}}
    printed = [fact for fact in _stated(progress, "setting") if fact.name in wanted]
    for fact in printed:
        if not _is_setting(fact.value, wanted[fact.name]):
            wants = json.dumps(wanted[fact.name])
            return _failed("settings", f"{fact.name} = {fact.value}", f"{fact.name} = {wants}", fact.line)
    expected = "the plan's layout, and the settings that were sent"
    return _ok("settings", f"{len(printed)} as planned", expected) if printed else _unknown("settings", expected)


def _layout_settings(plan: Plan) -> dict[str, Any]:
    """Values of the plan's layout by the names of NeMo's recipe fields."""
    runs = plan.parallelism
    return {
        "trainer.strategy.tensor_model_parallel_size": runs.tp,
        "trainer.strategy.pipeline_model_parallel_size": runs.pp,
        "trainer.strategy.virtual_pipeline_model_parallel_size": runs.vp,
        "trainer.strategy.context_parallel_size": runs.cp,
        "trainer.strategy.expert_model_parallel_size": runs.ep,
        "data.micro_batch_size": runs.mbs,
        "data.global_batch_size": runs.gbs,
        "data.seq_length": runs.seq_len,
        "model.config.seq_length": runs.seq_len,
        "model.config.num_layers": runs.layers,
    }


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _is_setting(text: str, wanted: object) -> bool:
    """Whether a printed JSON value equals the wanted one; True for a value that cannot be read."""
    found = json_value(text)
    if found is None and text != "null":
        return True
    return bool(found == wanted) or (text in _NOTHING and json.dumps(wanted) in _NOTHING)


def json_value(text: str) -> Any:
    """Value of a JSON text; None if the text is not JSON."""
    try:
        return parse_json(text)
    except ValueError:
        return None


def _starts(progress: Progress, window: _Window) -> ValidityCheck:
    expected = f"steps of one start, after {WARM_UP_STEPS} of its own"
    if not window.reached:
        return _unknown("starts", expected)
    inside = [step for step in progress.again_at if window.first < step <= window.last]
    if inside:
        found = f"the steps that count are of {len(inside) + 1} starts of the job; the last began at step {inside[-1]}"
        return _failed("starts", found, expected, "")
    began = max((step for step in progress.again_at if step <= window.first), default=None)
    if began is None:
        began = progress.step_times_s[0][0] if progress.step_times_s else 0
    if began and window.first - began < WARM_UP_STEPS:
        after = plural(window.first - began, "step")
        return _failed("starts", f"the steps that count begin {after} after a start at step {began}", expected, "")
    return _ok("starts", plural(progress.starts, "start"), expected)
