"""The last two panes: the exact script and what it costs; and the run itself."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from llmb_tui.catalog.published import Published
from llmb_tui.catalog.recipe import LogFormat
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.plan.options import TITLES, chosen_options
from llmb_tui.plan.plan import Plan
from llmb_tui.ui import units
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.found import Found
from llmb_tui.ui.panes.pane import Give, Pane
from llmb_tui.ui.panes.published_review import command_of, launch_facts, launch_text, starts, to_know, way
from llmb_tui.ui.text import MUTED, line, lines, plain, tell, told
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.launch_line import LaunchLine
from llmb_tui.ui.widgets.paragraphs import Paragraph, Paragraphs, fact, text
from llmb_tui.ui.widgets.run_header import results_of
from llmb_tui.ui.widgets.scroller import Scroller
from llmb_tui.wizard.answers import command
from llmb_tui.wizard.layout import other_layout
from llmb_tui.wizard.steps import StepId

_TITLES = {"direct": ("Batch script", "exactly what is submitted"), "recipe": ("Command", "exactly what starts it")}
_NAMES = {
    "profile": "profile",
    "nccl_trace": "NCCL trace",
    "save_checkpoint": "checkpoint",
    "load_checkpoint": "checkpoint",
    "hub_tokenizer": "tokenizer",
}
_DIRECT: dict[LogFormat, str] = {
    "nemo2": "NVIDIA's settings, given to NeMo by our script in the recipe's container",
    "hydra": "NVIDIA's command and settings, started by our batch script in the recipe's container",
}


class ReviewPane(Pane):
    """Everything before it is spent: what, where, cost, and the script to the letter."""

    STEP = StepId.REVIEW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "submit", "Submit", id="review.submit", tooltip="Submit the run, after a question"),
        Binding("z", "zoom", "Zoom", id="review.zoom", tooltip="The script on the whole screen; escape goes back"),
        Binding("y", "copy", "Copy", id="review.copy", tooltip="Copy the command that starts it"),
    ]

    class Submit(Message):
        """The person wants to submit what is shown."""

    def __init__(self, give: Give) -> None:
        super().__init__(give)
        self._ready = False
        self._launched = False
        self._against = ""
        self._first = ""
        self._command = ""

    def compose(self) -> ComposeResult:
        """The facts on top, the script scrolls."""
        yield Paragraphs()
        yield LaunchLine()
        yield Static(id="script-title", classes="label", markup=False)
        with Scroller(id="script"):
            yield Static(id="script-text", markup=False)
            yield Paragraphs(id="script-more")

    def show(self, view: View) -> None:
        """Facts at once, the script when it is rendered."""
        found = view.found
        published = found.procedure == "recipe"
        self._command = command_of(view) if published else ""
        self._launched = found.launched is not None
        self._against, self._first = why_not(view), found.comes_first
        self._ready = found.draft is not None and not self._against and not self._launched
        self.query_one(LaunchLine).show(found)
        self.query_one(Paragraphs).parts = review_facts(view)
        name, hint = _TITLES[found.procedure]
        self.query_one("#script-title", Static).update(line((name, "bold"), "  ", (hint, MUTED)))
        self.query_one("#script-text", Static).update(launch_text(view) if published else script_text(view))
        self.query_one("#script-more", Paragraphs).parts = to_know(view) if published else ()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """No key submits what cannot be; what has no command is copied by the wizard's own key."""
        if action == "submit":
            return None if self._against else True
        return bool(self._command) if action == "copy" else True

    def enter(self) -> None:
        """Submit; once submitted, go on to the run."""
        if self._launched:
            super().enter()
        elif self._against:
            tell(self.app, self._against, "warning")
        else:
            self.action_submit()

    def action_zoom(self) -> None:
        """The script on the whole screen, and back."""
        if self.screen.maximized:
            self.screen.minimize()
        else:
            self.screen.maximize(self.query_one("#script"), container=False)

    def action_copy(self) -> None:
        """The command, as it is to be pasted."""
        copy(self.app, self._command, "The command")

    def action_submit(self) -> None:
        """Ask for the submission."""
        if self._ready and self._first:
            tell(self.app, self._first, "warning")
        elif self._ready:
            self.post_message(self.Submit())


class RunPane(Pane):
    """The run that was submitted."""

    STEP = StepId.RUN

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "again", "Another run", id="run.again", tooltip="Start over, with the same answers")
    ]

    class Open(Message):
        """The run's own screen is wanted."""

    class Again(Message):
        """Another run is wanted."""

    def compose(self) -> ComposeResult:
        """A few words: the run has a screen of its own."""
        with Scroller(id="run-words"):
            yield LaunchLine()
            yield Paragraphs(id="run-facts")

    def show(self, view: View) -> None:
        """Which run, which job."""
        self.query_one(LaunchLine).show(view.found)
        self.query_one("#run-facts", Paragraphs).parts = run_facts(view.found)

    def enter(self) -> None:
        """Watch the run."""
        self.post_message(self.Open())

    def action_again(self) -> None:
        """Start over."""
        self.post_message(self.Again())


def review_facts(view: View) -> tuple[Paragraph, ...]:
    """What, where, cost, how it is started, command."""
    plan, profile = view.plan, view.found.profile
    if plan is None:
        return (text(line(("There is no plan to review yet.", MUTED))),)
    s = plan.selection
    what = f"{s.workload}@{s.release} {s.size} {s.dtype}, {s.scale} × {s.gpu.upper()}, {plan.scaling}"
    where = line(("no cluster yet: step 4", "$text-warning"))
    if profile is not None:
        where = line(f"{profile.name}, partition {profile.partition}, account {profile.account}")
    cost = "not known" if plan.gpu_hours is None else f"{units.gpu_hours(plan.gpu_hours)} + start-up"
    facts: tuple[Paragraph, ...] = (
        fact("what", line((what, "bold"))),
        *(fact("layout", line((words, "$text-warning"))) for words in other_layout(view.usual, plan)),
        fact("steps", line(f"{plan.steps}, at most {plan.time_limit} on {units.nodes(plan.nodes)}")),
        fact("where", where),
        fact("cost", line((cost, "bold"))),
        *beside(plan),
    )
    recipe = view.catalog.recipe(s.workload, s.release)
    if view.found.procedure == "recipe":
        published = recipe.published
        if published is None:
            return facts
        return (*facts, fact("procedure", line(way(published))), *launch_facts(view, published))
    direct = f"direct: {_DIRECT[recipe.launch.kind]}; the published one is NVIDIA's launch.sh"
    facts += (fact("procedure", line(direct)),)
    facts += (fact("command", line((command(s, profile.name if profile else None), MUTED))),)
    return facts + changes(view) + differences(view)


def why_not(view: View) -> str:
    """Why nothing can be submitted now; empty where something can, or will be once it is made."""
    errors = [one for one in (view.plan.problems if view.plan else ()) if one.severity == "error"]
    if errors:
        return f"{errors[0].reason} {errors[0].fix}".rstrip()
    return "A submission is on its way: one at a time." if view.found.launching is not None else ""


def beside(plan: Plan) -> tuple[Paragraph, ...]:
    """What the run does beside the benchmark, and what follows from it."""
    said = {problem.field: problem.reason for problem in plan.problems if problem.severity == "note"}
    return tuple(
        fact(_NAMES[field], line((said[field], "$text-warning" if "WARN" in said[field] else "")))
        for field in chosen_options(plan.options)
        if field in said
    )


def differences(view: View) -> tuple[Paragraph, ...]:
    """Where the job on this cluster is not what the recipe makes of it."""
    draft = view.found.draft
    return tuple(fact("note", line(note)) for note in (draft.run.direct.notes if draft is not None else ()))


def changes(view: View) -> tuple[Paragraph, ...]:
    """The recipe's variables that the cluster's profile sets otherwise."""
    draft = view.found.draft
    changed = draft.run.direct.overridden if draft is not None else ()
    return tuple(
        fact(name, line((f"{yours}, from the cluster's profile; the recipe has {recipes}", "$text-warning")))
        for name, recipes, yours in changed
    )


def agreement(plan: Plan, profile: ClusterProfile, published: Published | None = None) -> Content:
    """The question before GPUs are spent; `published` is the recipe's own procedure where that is the chosen one."""
    s = plan.selection
    rows = [
        line("Submit ", (f"{s.workload} {s.size} {s.dtype}", "bold"), " on ", (f"{s.scale} × {s.gpu.upper()}", "bold")),
        line("to ", (profile.name, "bold"), f", partition {profile.partition}, account {profile.account},"),
        line("for ", (units.gpu_hours(plan.gpu_hours), "bold"), f" + start-up, at most {plan.time_limit}?"),
    ]
    more = " and ".join(TITLES[field] for field in chosen_options(plan.options))
    if more:
        rows.insert(1, line("with ", (more, "bold")))
    if published is not None:
        rows += [Content(""), line(f"{starts(published.launch)}.")]
    if profile.notice:
        rows.append(line((profile.notice, "$text-warning")))
    return lines(rows)


def script_text(view: View) -> Content:
    """The script, or why it is not there."""
    found, plan = view.found, view.plan
    if found.draft is not None:
        return plain(found.draft.script)
    trouble = found.trouble_of("render")
    if trouble is not None:
        return told(trouble)
    words = "The script needs a cluster: step 4."
    if "render" in found.doing:
        words = "nemo-run writes the script …"
    elif plan is None or not plan.launchable:
        words = "This selection cannot be launched: the steps with ✗ say why."
    return line((words, MUTED))


def run_facts(found: Found) -> tuple[Paragraph, ...]:
    """What was submitted, or what is left to do."""
    run = found.launched
    if run is None:
        return (text(line(("Nothing was submitted yet. Review comes first.", MUTED))),)
    words = {
        "submitted": ("● submitted", "$text-success"),
        "refused": ("✗ refused", "$text-error"),
        "withdrawn": ("✗ withdrawn: it never reached Slurm", "$text-error"),
        "unknown": ("? unknown: it is not submitted again by itself", "$text-warning"),
        "intended": ("○ intended", MUTED),
    }
    parts = [
        fact("run", line((run.id, "bold"))),
        fact("where", line(run.cluster)),
        fact("procedure", line(units.PROCEDURES[run.procedure])),
        fact("state", line(words[run.submission])),
    ]
    if run.job_ids:
        watched = f", of which {run.job_ids[-1]} is watched" if len(run.job_ids) > 1 else ""
        parts.append(fact("job", line(", ".join(run.job_ids), watched, f"   {run.job_state or ''}".rstrip())))
    if results := results_of(run):
        parts.append(fact("results", line(results)))
    if run.note:
        parts.append(fact("note", plain(run.note)))
    return (*parts, text(Content("")), text(line(("enter watches it, n starts another one", MUTED))))
