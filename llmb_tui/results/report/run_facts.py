"""What was asked for, what ran, and in what that deviates from the published procedure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from llmb_tui.catalog.recipe import VARIANT_WORDS
from llmb_tui.launch.spec import LaunchSpec, RunaiSpec, UpstreamSpec
from llmb_tui.plan.options import chosen_options
from llmb_tui.plan.plan import Parallelism, Printed
from llmb_tui.plan.selection import PROCEDURE_TITLES, ProcedureId
from llmb_tui.results.report.blocks import Block, Bullets, Fact, Facts, Grid, Text, known
from llmb_tui.results.report.reported_run import ReportedRun, gpus, moment
from llmb_tui.results.table import Cell, Table
from llmb_tui.text import capital, plural

_LAYOUT = tuple(field.name for field in fields(Parallelism))
_PROCEDURES: dict[ProcedureId, str] = {
    "direct": "It was started by llmb-tui's own script in NVIDIA's container, with the settings of the recipe, and not "
    "by NVIDIA's launch scripts.",
    "upstream": "It was started by NVIDIA's own scripts, as they are.",
    "llmb": "It was started by NVIDIA's llmb-run; not everything that it has set is known here.",
    "runai": "It was started by llmb-tui's own script in NVIDIA's container, as a workload of Run:ai; the recipe "
    "describes Slurm.",
}
_NO_DIGEST = "not known: it is named by its tag, and nothing in the log tells its digest"


def asked(one: ReportedRun) -> Facts:
    """The selection."""
    plan = one.result.plan
    selection, overrides = plan.selection, plan.selection.overrides.set_fields()
    variant = f" ({VARIANT_WORDS[plan.precision_variant]})" if plan.precision_variant else ""
    title = f": {one.recipe_title}" if one.recipe_title else ""
    return known(
        Fact("Workload", f"{selection.workload}@{selection.release}{title}"),
        Fact("Model size", selection.size),
        Fact("GPUs", f"{gpus(plan)}, {plural(plan.nodes, 'node')} of {plan.gpus_per_node}"),
        Fact("Precision", f"{selection.dtype}{variant}"),
        Fact("Scaling", plan.scaling),
        Fact("Steps", f"{plan.steps:,}, in {plan.time_limit} at most"),
        Fact("Procedure", PROCEDURE_TITLES[one.run.procedure]),
        Fact("Set by hand", ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in overrides.items())),
        Fact("Beside the benchmark", ", ".join(option.label for option in chosen_options(plan.options))),
        Fact("Cost, as expected", _unless_none(plan.gpu_hours, "{:,.1f} GPU-hours and start-up")),
        Fact("Note of the operator", one.note),
    )


def ran(one: ReportedRun) -> Iterator[Block]:
    """Layout, cluster, job, container, versions and checksums."""
    run, result, plan = one.run, one.result, one.result.plan
    rows = [("ran", *_cells(plan.parallelism)), *([("printed", *_cells(plan.printed))] if plan.printed else [])]
    headings = ("", *(name.replace("_", " ") if name in ("seq_len", "layers") else name.upper() for name in _LAYOUT))
    caption = (
        "Parallelism and batch: tensor (TP), pipeline (PP), context (CP), expert (EP) and data (DP) parallel, virtual "
        "pipeline stages (VP), micro and global batch (MBS, GBS), micro-batches a step (GA)."
    )
    yield Grid(caption, Table.of(headings, rows))
    spec, job = run.spec, result.job
    account = f"{spec.account}, {spec.partition}" if isinstance(spec, (LaunchSpec, UpstreamSpec)) else ""
    image = spec.container_image if isinstance(spec, LaunchSpec) else spec.image if isinstance(spec, RunaiSpec) else ""
    named = "@sha256:" in f"{plan.container}{image}"
    versions = result.facts.versions_by_name if result.facts else {}
    yield known(
        Fact("Cluster", run.cluster + (" (simulated)" if result.simulated else "")),
        Fact(run.words.job.capitalize(), ", ".join(run.job_ids), exact=True),
        Fact("Account and partition", account),
        Fact("Nodes", job.node_list if job else "", exact=True),
        Fact("Time of the job", _unless_none(job.elapsed_s if job else None, "{:,.0f} s")),
        Fact("Submitted", moment(result.submitted_at) if result.submitted_at else ""),
        Fact("Last line of its log", f"copied {moment(result.ended_at)}" if result.ended_at else ""),
        Fact("Container", plan.container or "", exact=True),
        Fact("Image on the cluster", image if image != plan.container else "", exact=True),
        Fact("Digest of the container", "" if named else _NO_DIGEST),
        *(Fact(f"{capital(name)}, by its log", version) for name, version in versions.items()),
        Fact("Driver and libraries", "" if versions else "its log says nothing of their versions"),
        Fact("Script, SHA-256", one.script_sha256, exact=True),
        Fact("Log, SHA-256", one.log_sha256, exact=True),
    )


def deviations(one: ReportedRun) -> Iterator[Block]:
    """In what it is not the recipe, and what was known of that before."""
    run, plan = one.run, one.result.plan
    found = [_PROCEDURES[run.procedure]]
    spec = run.spec
    if isinstance(spec, (LaunchSpec, RunaiSpec)):
        source = "from the cluster's profile; the recipe has"
        found += [f"{name} is {yours}, {source} {theirs}." for name, theirs, yours in spec.overridden]
    found += [_sentence(note) for note in spec.notes] if spec else []
    found += [f"Otherwise than in the runs behind the expected step time: {words}." for words in run.otherwise]
    overrides = plan.selection.overrides.set_fields()
    found += [f"{name.replace('_', ' ').upper()} was set by hand to {value:,}." for name, value in overrides.items()]
    for name in _LAYOUT if plan.printed is not None and not overrides else ():
        printed, ran = getattr(plan.printed, name), getattr(plan.parallelism, name)
        if printed is not None and printed != ran:
            found.append(f"The README prints {name.upper()} {printed:,}; {'none' if ran is None else f'{ran:,}'} ran.")
    if plan.selection.steps is not None:
        found.append(f"{plan.steps:,} steps were asked for, which need not be the recipe's number.")
    found += [f"Beside the benchmark: {option.label}." for option in chosen_options(plan.options)]
    if one.result.restarts:
        found.append(f"The job was restarted: {plural(one.result.restarts, 'time')}.")
    yield Bullets(tuple(dict.fromkeys(found)))
    notes = [" ".join(filter(None, (problem.reason, problem.fix))) for problem in plan.problems]
    if notes:
        yield Text("What was known of this configuration before it ran:")
        yield Bullets(tuple(notes))


def _unless_none(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _cells(layout: Parallelism | Printed) -> Sequence[Cell]:
    return [getattr(layout, name) for name in _LAYOUT]


def _sentence(words: str) -> str:
    text = capital(words)
    return text if text.endswith((".", "!", "?")) else f"{text}."
