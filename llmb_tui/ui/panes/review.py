"""The last two panes: Review with the run, its cost and the exact script; Run with the submitted run."""

from __future__ import annotations

import time
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.reactive import var
from textual.timer import Timer
from textual.widgets import Static

from llmb_tui.answers.plan import scaling_word
from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.language.quantities import clock, gpu_hours
from llmb_tui.language.states import severity_label, state_label
from llmb_tui.language.text import plural
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.plan.options import chosen_options
from llmb_tui.plan.plan import Plan
from llmb_tui.request import RunRequest
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.panes.pane import Dispatch, Pane
from llmb_tui.ui.text import MUTED, STYLES, error_content, error_line, line, lines, plain, set_text, state_part
from llmb_tui.ui.widgets.run_header import run_title
from llmb_tui.ui.widgets.texts import Paragraph, Paragraphs, Scroller, fact, text
from llmb_tui.wizard.answers import command
from llmb_tui.wizard.gates import blockers, layout_difference, other_procedure, unfinished_step
from llmb_tui.wizard.state import Launch, WizardState
from llmb_tui.wizard.steps import StepId

_TICK_S = 1.0


class ReviewPane(Pane):
    """Review before submission: run, cluster, cost and the exact script."""

    STEP = StepId.REVIEW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "s", "screen.ask('submit')", "Submit", id="review.submit", tooltip="Submit the run after a confirmation"
        ),
        Binding("z", "zoom", "Zoom", id="review.zoom", tooltip="Show the script on the whole screen; escape: back"),
        Binding("y", "copy", "Copy", id="review.copy", tooltip="Copy the command that launches the run"),
    ]

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(dispatch)
        self._command = ""

    def compose(self) -> ComposeResult:
        yield Paragraphs()
        yield LaunchLine()
        yield Static(id="script-title", classes="label", markup=False)
        with Scroller(id="script"):
            yield Static(id="script-text", markup=False)
            yield Paragraphs(id="script-more")

    def show(self, state: WizardState) -> None:
        from llmb_tui.launch.procedure_loader import procedure

        chosen = procedure(state.procedure)
        command, self._command = self._command, exact_command(state)
        self.query_one(LaunchLine).show(state)
        self.query_one(Paragraphs).parts = review_facts(state)
        title = line((chosen.script_title, "bold"), "  ", (chosen.script_hint, MUTED))
        set_text(self.query_one("#script-title", Static), title)
        set_text(self.query_one("#script-text", Static), script_text(state, chosen.script_title, chosen.preparing))
        self.query_one("#script-more", Paragraphs).parts = launch_notes(state)
        if bool(command) != bool(self._command):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Disable the copy key without a command; the wizard's key then copies the selection."""
        return bool(self._command) if action == "copy" else True

    def action_zoom(self) -> None:
        if self.screen.maximized:
            self.screen.minimize()
        else:
            self.screen.maximize(self.query_one("#script"), container=False)

    def action_copy(self) -> None:
        copy(self.app, self._command, "The command")


class RunPane(Pane):
    """The submitted run."""

    STEP = StepId.RUN

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "screen.ask('again')", "New run", id="run.again", tooltip="Start a new run with the same answers")
    ]

    def compose(self) -> ComposeResult:
        with Scroller(id="run-words"):
            yield LaunchLine()
            yield Paragraphs(id="run-facts")

    def show(self, state: WizardState) -> None:
        self.query_one(LaunchLine).show(state)
        self.query_one("#run-facts", Paragraphs).parts = run_facts(state.cluster.launched)


def review_facts(state: WizardState) -> tuple[Paragraph, ...]:
    """Facts about the run, its cluster, cost, launch method and command."""
    plan, profile = state.proposal.plan, state.proposal.profile
    if plan is None:
        return (text(("Nothing to review yet. Fix the fields marked ✗ in steps 1 to 3.", MUTED)),)
    s = plan.selection
    configuration = (
        f"{workload_label(s.recipe_id, s.size, s.dtype)}, {gpus_label(s.scale, s.gpu)}, {scaling_word(plan.scaling)}"
    )
    cluster = line(("no cluster chosen (step 4)", "$text-warning"))
    if profile is not None:
        cluster = line(f"{profile.name}, {profile.share}")
    cost = "unknown" if plan.gpu_hours is None else f"{gpu_hours(plan.gpu_hours)} + start-up"
    facts = (
        fact("run", (configuration, "bold")),
        *(fact("layout", (words, "$text-warning")) for words in layout_difference(state.proposal.usual, plan)),
        fact("steps", f"{plan.steps}, time limit {plan.time_limit}, {plural(plan.nodes, 'node')}"),
        fact("cluster", cluster),
        fact("cost", (cost, "bold")),
        *extra_facts(plan),
    )
    refusals = (problem for problem in blockers(state) if problem.field in ("observer", "gpu_hours", "request"))
    head = severity_label("error").text
    facts += tuple(fact(head, (problem.reason, "$text-error"), (f" {problem.fix}", MUTED)) for problem in refusals)
    return facts + launch_facts(state)


def extra_facts(plan: Plan) -> tuple[Paragraph, ...]:
    """The chosen options of the run, with their effects."""
    problem_fields = {problem.field for problem in plan.problems if problem.severity != "note"}
    notes = {problem.field: problem.reason for problem in plan.problems if problem.severity == "note"}
    chosen = [(option, notes.get(option.name, option.label)) for option in chosen_options(plan.options)]
    return tuple(
        fact(option.word, (words, "$text-warning" if "WARN" in words else ""))
        for option, words in chosen
        if option.name in notes or option.name not in problem_fields
    )


def confirmation_question(request: RunRequest, starts: str = "") -> Content:
    """The question before a submission. `starts`: effect of submitting, if it is more than one sbatch."""
    plan, profile = request.plan, request.profile
    s = plan.selection
    rows = [
        line(
            "Submit ",
            (workload_label(s.workload, s.size, s.dtype), "bold"),
            " on ",
            (gpus_label(s.scale, s.gpu), "bold"),
        ),
        line("to ", (profile.name, "bold"), f", {profile.share},"),
        line("for ", (gpu_hours(plan.gpu_hours), "bold"), f" + start-up, time limit {plan.time_limit}?"),
    ]
    more = " and ".join(option.label for option in chosen_options(plan.options))
    if more:
        rows.insert(1, line("with ", (more, "bold")))
    if starts:
        rows += [Content(""), line(f"{starts}.")]
    if profile.notice:
        rows.append(line((profile.notice, "$text-warning")))
    return lines(*rows)


def run_facts(run: Run | None) -> tuple[Paragraph, ...]:
    """Facts about the submitted run, or the step that submits one."""
    if run is None:
        return (text(("No run has been submitted yet. Submit one at step 6.", MUTED)),)
    words, style = state_part(state_label(run.submission))
    if run.submission == "withdrawn":
        words += f": it never reached {run.words.scheduler}"
    elif run.submission == "unknown":
        words += ": it is not submitted again automatically"
    parts = [
        fact("run", (run.id, "bold")),
        fact("cluster", run.cluster),
        fact("launch", PROCEDURES[run.procedure].title),
        fact("state", (words, style)),
    ]
    if run.job_ids:
        watched = f" (watching {run.job_ids[-1]})" if len(run.job_ids) > 1 else ""
        parts.append(fact(run.words.job, ", ".join(run.job_ids), watched, f"   {run.job_state or ''}".rstrip()))
    if results := run.results:
        parts.append(fact("results", results))
    if run.note:
        parts.append(fact("note", plain(run.note)))
    return (*parts, text(Content("")), text(("enter: watch · n: new run", MUTED)))


def launch_facts(state: WizardState) -> tuple[Paragraph, ...]:
    """Facts about the launch: method, problems, command, missing steps and notes."""
    launch, plan, missing = state.proposal.launch, state.proposal.plan, unfinished_step(state)
    if plan is None:
        return ()
    facts = [fact("launch", launch.way)] if launch.way else []
    for problem in launch.problems:
        label = severity_label(problem.severity)
        facts.append(fact(label.text, (problem.reason, STYLES[label.tone]), (f" {problem.fix}", MUTED)))
    if not launch.command:
        profile = state.proposal.profile
        words = command(plan.selection, profile.name if profile else None, other_procedure(state))
        return (*facts, fact("command", (words, MUTED)), *_prepared_facts(state))
    if error := state.cluster.task_error("prepare"):
        facts.append(fact("✗ not ready", (error_line(error), "$text-error")))
    if not plan.launchable:
        return tuple(facts)
    facts.append(fact("submit", (launch.starts, "$text-accent")))
    if missing:
        facts.append(fact("to do", (missing, "$text-warning")))
    if launch.takes_token:
        words = "the scripts receive your Hugging Face token; see the notes below the command"
        facts.append(fact("token", (words, "$text-warning")))
    if launch.differences or launch.notes:
        facts.append(fact("notes", "differences and notes are below the command"))
    return tuple(facts)


def _prepared_facts(state: WizardState) -> tuple[Paragraph, ...]:
    """Settings of the recipe that the cluster's profile overrides, and notes about the prepared job."""
    if (prepared := state.cluster.prepared) is None:
        return ()
    words = "{}, from the cluster's profile; the recipe has {}"
    overrides = [(name, words.format(value, default)) for name, default, value in prepared.overridden]
    facts = [fact(name, (change, "$text-warning")) for name, change in overrides]
    return (*facts, *(fact("note", note) for note in prepared.notes))


def exact_command(state: WizardState) -> str:
    """The exact command; empty if there is none, or if the plan cannot be launched."""
    plan, launch, prepared = state.proposal.plan, state.proposal.launch, state.cluster.prepared
    if plan is None or not plan.launchable:
        return ""
    return prepared.script if launch.command and prepared is not None else launch.command


def script_text(state: WizardState, title: str, preparing: str) -> Content:
    """The script or command, or the reason why there is none. `preparing`: text while it is being made."""
    cluster, plan = state.cluster, state.proposal.plan
    error, launchable = cluster.task_error("prepare"), plan is not None and plan.launchable
    if text := exact_command(state):
        return plain(text)
    if launchable and cluster.prepared is not None:
        return plain(cluster.prepared.script)
    if error is not None:
        return error_content(error)
    words = f"Choose a cluster to see the {title.lower()} (step 4)."
    if cluster.preparing:
        words = preparing
    elif not launchable:
        words = "This run cannot be launched with this method. The steps marked ✗ show the reason."
    return line((words, MUTED))


def launch_notes(state: WizardState) -> tuple[Paragraph, ...]:
    """Paragraphs below the command: differences from the recipe's documents, then notes of the launch method."""
    launch = state.proposal.launch
    if not exact_command(state):
        return ()
    parts = [(line(("≠ ", "$text-accent")), line(words)) for words in launch.differences]
    parts += [(line(("· ", "$text-accent")), line(words)) for words in launch.notes]
    return (text(Content("")), *parts) if parts else ()


class LaunchLine(Paragraphs):
    """Progress and duration of the submission in progress; hidden while there is none."""

    launch: var[Launch | None] = var["Launch | None"](None)
    other: var[bool] = var(False)
    """Whether the submission has other answers than the wizard shows."""
    _ticks: Timer | None = None

    def show(self, state: WizardState) -> None:
        run = state.launch.run if state.launch is not None else None
        chosen = (state.proposal.selection, state.procedure)
        self.other = run is not None and (run.plan.selection, run.procedure) != chosen
        self.launch = state.launch

    def on_mount(self) -> None:
        self._ticks = self.set_interval(_TICK_S, self.watch_launch, pause=self.launch is None)

    def watch_launch(self) -> None:
        self.display = self.launch is not None
        if self._ticks is not None:
            (self._ticks.pause if self.launch is None else self._ticks.resume)()
        if self.launch is not None:
            self.parts = launch_parts(self.launch, time.monotonic(), self.other)

    watch_other = watch_launch


def launch_parts(launch: Launch, now: float, other: bool) -> tuple[Paragraph, ...]:
    """Duration of a submission, its run if that differs, and the last line of its output.

    `now`: monotonic time.
    """
    from llmb_tui.launch.procedure_loader import procedure

    run = launch.run
    age = clock(max(0.0, now - launch.since))
    words = f"{procedure(run.procedure).submitting} for {age}; safe to leave"
    other_run = f"   {run_title(run)} on {run.cluster}" if other else ""
    parts = [fact("now", (words, "$text-warning"), (other_run, MUTED))]
    if launch.last_line:
        parts.append(fact("", (launch.last_line, MUTED)))
    return tuple(parts)
