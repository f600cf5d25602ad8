"""What Review says of the published procedure: how it starts, the command to the letter, and what is to be known."""

from __future__ import annotations

from textual.content import Content

from llmb_tui.catalog.published import LaunchScript, Published
from llmb_tui.ui import units
from llmb_tui.ui.text import MUTED, line, plain
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.paragraphs import Paragraph, fact, text


def way(published: Published) -> str:
    """What the published procedure is, in a line."""
    scripts = f"{published.setup.script} and {published.launch.script}"
    return f"published: NVIDIA's {scripts} of {published.tag}, unchanged"


def starts(launch: LaunchScript) -> str:
    """What submitting does."""
    if launch.how == "sbatch":
        return f"{launch.script} is given to sbatch on the login node, at most once; it is one job"
    return f"{launch.script} is started on the login node, detached and at most once; it may make up to three jobs"


def launch_facts(view: View, published: Published) -> tuple[Paragraph, ...]:
    """How it is started, what comes first, what it cannot do of what is asked for, and where to read more."""
    launch, found = view.published, view.found
    facts = []
    for problem in launch.problems:
        glyph, style = units.SEVERITIES[problem.severity]
        facts.append(fact(f"{glyph} {problem.severity}", line((problem.reason, style), (f" {problem.fix}", MUTED))))
    trouble = found.trouble_of("render")
    if trouble is not None:
        facts.append(fact("✗ not ready", line((f"{trouble.what} {trouble.why} {trouble.fix}", "$text-error"))))
    if not command_of(view):
        return tuple(facts)
    facts.append(fact("submit", line((starts(published.launch), "$text-accent"))))
    if found.comes_first:
        facts.append(fact("first", line((found.comes_first, "$text-warning"))))
    if launch.command is not None and launch.command.token_file:
        words = "gets your Hugging Face token; the notes say what becomes of it"
        facts.append(fact("token", line((words, "$text-warning"))))
    if launch.differences or launch.notes:
        facts.append(fact("to know", line("differences and notes stand under the command")))
    return tuple(facts)


def command_of(view: View) -> str:
    """The command to the letter; empty where it is not there, or would not do what is asked for."""
    launch, plan, draft = view.published, view.plan, view.found.draft
    if launch.command is None or plan is None or not plan.launchable:
        return ""
    return draft.script if draft is not None else launch.command.text


def launch_text(view: View) -> Content:
    """The command, or why it is not there."""
    command = command_of(view)
    if command:
        return plain(command)
    words = "The command needs a cluster: step 4."
    if view.plan is None or not view.plan.launchable:
        words = "This selection cannot be launched this way: the steps with ✗ say why."
    return line((words, MUTED))


def to_know(view: View) -> tuple[Paragraph, ...]:
    """What we do otherwise than the recipe's documents, then what the procedure does by itself; under the command."""
    launch = view.published
    if not command_of(view):
        return ()
    parts = [(line(("≠ ", "$text-accent")), line(words)) for words in launch.differences]
    parts += [(line(("· ", "$text-accent")), line(words)) for words in launch.notes]
    return (text(Content("")), *parts) if parts else ()
