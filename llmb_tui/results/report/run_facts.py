"""What was asked for, what ran, and in what that deviates from the published procedure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from llmb_tui.catalog.recipe import VARIANT_WORDS
from llmb_tui.launch.spec import LaunchSpec, RunaiSpec, UpstreamSpec
from llmb_tui.plan.options import chosen_options
from llmb_tui.plan.plan import Parallelism, Printed
from llmb_tui.plan.selection import PROCEDURE_TITLES, ProcedureId
from llmb_tui.results.report.blocks import Block, Bullets, Fact, Facts, Grid, Text
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


def asked(one: ReportedRun) -> Facts:
    """The selection."""
    plan, recipe = one.result.plan, one.recipe
    selection = plan.selection
    variant = f" ({VARIANT_WORDS[plan.precision_variant]})" if plan.precision_variant else ""
    facts = [
        Fact("Workload", f"{selection.workload}@{selection.release}" + (f": {recipe.title}" if recipe else "")),
        Fact("Model size", selection.size),
        Fact("GPUs", f"{gpus(plan)}, {plural(plan.nodes, 'node')} of {plan.gpus_per_node}"),
        Fact("Precision", f"{selection.dtype}{variant}"),
        Fact("Scaling", f"{plan.scaling}"),
        Fact("Steps", f"{plan.steps:,}, in {plan.time_limit} at most"),
        Fact("Procedure", PROCEDURE_TITLES[one.run.procedure]),
    ]
    by_hand = ", ".join(
        f"{name.replace('_', ' ')} {value:,}" for name, value in selection.overrides.set_fields().items()
    )
    if by_hand:
        facts.append(Fact("Set by hand", by_hand))
    if options := ", ".join(option.label for option in chosen_options(plan.options)):
        facts.append(Fact("Beside the benchmark", options))
    if plan.gpu_hours is not None:
        facts.append(Fact("Cost, as expected", f"{plan.gpu_hours:,.1f} GPU-hours and start-up"))
    if one.note:
        facts.append(Fact("Note of the operator", one.note))
    return Facts(tuple(facts))


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
    facts = [Fact("Cluster", run.cluster + (" (simulated)" if one.simulated else ""))]
    if run.job_ids:
        facts.append(Fact(run.words.job.capitalize(), ", ".join(run.job_ids), exact=True))
    if isinstance(run.spec, (LaunchSpec, UpstreamSpec)):
        facts.append(Fact("Account and partition", f"{run.spec.account}, {run.spec.partition}"))
    if result.job is not None and result.job.node_list:
        facts.append(Fact("Nodes", result.job.node_list, exact=True))
    if result.job is not None and result.job.elapsed_s is not None:
        facts.append(Fact("Time of the job", f"{result.job.elapsed_s:,.0f} s"))
    if result.submitted_at:
        facts.append(Fact("Submitted", moment(result.submitted_at)))
    if result.ended_at:
        facts.append(Fact("Last line of its log", f"copied {moment(result.ended_at)}"))
    facts += _container(one)
    versions: dict[str, list[str]] = {}
    for name, version in result.facts.versions if result.facts else ():
        versions.setdefault(name, []).append(version)
    facts += [Fact(f"{capital(name)}, by its log", ", ".join(found)) for name, found in versions.items()]
    if not versions:
        facts.append(Fact("Driver and libraries", "its log says nothing of their versions"))
    if one.script_sha256:
        facts.append(Fact("Script, SHA-256", one.script_sha256, exact=True))
    if one.log_sha256:
        facts.append(Fact("Log, SHA-256", one.log_sha256, exact=True))
    yield Facts(tuple(facts))


def _container(one: ReportedRun) -> Iterator[Fact]:
    spec, name = one.run.spec, one.result.plan.container
    image = spec.container_image if isinstance(spec, LaunchSpec) else spec.image if isinstance(spec, RunaiSpec) else ""
    if name:
        yield Fact("Container", name, exact=True)
    if image and image != name:
        yield Fact("Image on the cluster", image, exact=True)
    if "@sha256:" not in f"{name}{image}":
        yield Fact(
            "Digest of the container", "not known: it is named by its tag, and nothing in the log tells its digest"
        )


def deviations(one: ReportedRun) -> Iterator[Block]:
    """In what it is not the recipe, and what was known of that before."""
    run, plan = one.run, one.result.plan
    found = [_PROCEDURES[run.procedure]]
    spec = run.spec
    if isinstance(spec, (LaunchSpec, RunaiSpec)):
        found += [
            f"{name} is {yours}, from the cluster's profile; the recipe has {theirs}."
            for name, theirs, yours in spec.overridden
        ]
    found += [_sentence(note) for note in spec.notes] if spec else []
    found += [f"Otherwise than in the runs behind the expected step time: {words}." for words in run.otherwise]
    for name, value in plan.selection.overrides.set_fields().items():
        found.append(f"{name.replace('_', ' ').upper()} was set by hand to {value:,}.")
    if plan.printed is not None and not plan.selection.overrides.set_fields():
        for name in _LAYOUT:
            printed, ran = getattr(plan.printed, name), getattr(plan.parallelism, name)
            if printed is not None and printed != ran:
                found.append(
                    f"The README prints {name.upper()} {printed:,}; {'none' if ran is None else f'{ran:,}'} ran."
                )
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


def _cells(layout: Parallelism | Printed) -> Sequence[Cell]:
    return [getattr(layout, name) for name in _LAYOUT]


def _sentence(words: str) -> str:
    text = words[:1].upper() + words[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
