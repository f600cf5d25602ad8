"""The keys of the wizard, and what its help says."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from llmb_tui.wizard.steps import TITLES

HELP = """From the choice of a workload to a submitted run, in seven steps. The preview follows every key.
Going back is never blocked and keeps every answer; an answer that became impossible is flagged with ✗.
Tab and shift+tab go from field to field, and to what is said of the plan where it has to be scrolled."""

_STRAIGHT = "Straight to a step"

KEYS: list[BindingType] = [
    Binding("left", "back", "Back", key_display="←", id="wizard.back", tooltip="The step before; answers stay"),
    Binding("right", "next", "Next", key_display="→", id="wizard.next", tooltip="The next step that is open"),
    Binding("enter", "enter", "Go on", show=False, id="wizard.enter", tooltip="What this step is for, then go on"),
    Binding("escape", "leave_field", "Leave the field", id="wizard.list", tooltip="From a field to the list"),
    Binding("slash", "find", "Find", key_display="/", id="wizard.find", tooltip="Narrow the list by typing"),
    Binding("p", "preview", "Preview", id="wizard.preview", tooltip="The whole preview, its chart, or the form again"),
    Binding("y", "copy", "Copy", id="wizard.copy", tooltip="Copy the choice as a command line"),
    Binding("J", "app.jobs", "Runs", id="wizard.jobs", tooltip="All runs, and those that are going"),
    Binding("w", "watch", "Watch", show=False, id="wizard.watch", tooltip="Watch the newest run that is going"),
    *(
        Binding(str(int(step)), f"go({int(step)})", title, show=False, id=f"wizard.step{int(step)}", tooltip=_STRAIGHT)
        for step, title in TITLES.items()
    ),
]
