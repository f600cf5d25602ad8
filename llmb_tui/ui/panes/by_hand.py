"""What Review says of the published procedure: the command to the letter, and what is to be known before it is run."""

from __future__ import annotations

from textual.content import Content

from llmb_tui.catalog.published import Published
from llmb_tui.ui import units
from llmb_tui.ui.text import MUTED, line, plain
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.paragraphs import Paragraph, fact, text

WHY_BY_HAND = "The published procedure is not submitted from here yet: it is started by hand."


def way(published: Published) -> str:
    """What the published procedure is, in a line."""
    scripts = f"{published.setup.script} and {published.launch.script}"
    return f"published: NVIDIA's {scripts} of {published.tag}, unchanged"


def launch_facts(view: View) -> tuple[Paragraph, ...]:
    """How it is started, what comes first, what it cannot do of what is asked for, and where to read more."""
    launch, first = view.published, view.found.comes_first
    facts = []
    for problem in launch.problems:
        glyph, style = units.SEVERITIES[problem.severity]
        facts.append(fact(f"{glyph} {problem.severity}", line((problem.reason, style), (f" {problem.fix}", MUTED))))
    if not command_of(view):
        return tuple(facts)
    words = "by hand for now (y copies the command); its job is not followed"
    facts.append(fact("start", line((words, "$text-accent"))))
    if first:
        facts.append(fact("first", line((first, "$text-warning"))))
    if launch.command is not None and launch.command.token_file:
        words = "gets your Hugging Face token; the notes say what becomes of it"
        facts.append(fact("token", line((words, "$text-warning"))))
    if launch.differences or launch.notes:
        facts.append(fact("to know", line("differences and notes stand under the command")))
    return tuple(facts)


def command_of(view: View) -> str:
    """The command to the letter; empty where it is not there, or would not do what is asked for."""
    launch, plan = view.published, view.plan
    return launch.command.text if launch.command and plan and plan.launchable else ""


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
