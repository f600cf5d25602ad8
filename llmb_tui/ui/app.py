"""`LlmbApp`: wires the screens. What they do is theirs."""

# ruff: noqa: PLC0415 - nothing heavy is imported before the first frame
from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from llmb_tui.services import Services
from llmb_tui.ui.dialogs import Help
from llmb_tui.ui.prompter import Ask, ModalPrompter
from llmb_tui.ui.screens.wizard import WizardScreen


class LlmbApp(App[None]):
    """The wizard first; runs open over it."""

    TITLE = "llmb-tui"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "keys", "Help", key_display="?", id="app.help", tooltip="Keys and what they do"),
        Binding("q", "quit", "Quit", show=False, id="app.quit", tooltip="Leave; what runs on a cluster goes on there"),
    ]

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services
        self.prompter = ModalPrompter(self)
        services.prompter = self.prompter

    def get_default_screen(self) -> Screen[None]:
        """The wizard."""
        return WizardScreen(self.services, self.prompter)

    def on_ask(self, event: Ask) -> None:
        """A thread wants to know something of the person."""

        def give(result: object) -> None:
            if not event.result.done():
                event.result.set_result(result)

        self.push_screen(event.dialog(), give)

    def on_unmount(self) -> None:
        """Let no waiting thread hold the program."""
        self.prompter.give_up()
        self.services.close()

    def on_wizard_screen_open_run(self, event: WizardScreen.OpenRun) -> None:
        """Show one run."""
        from llmb_tui.ui.screens.run import RunScreen

        self.push_screen(RunScreen(self.services, event.run_id))

    def action_jobs(self) -> None:
        """Show all runs."""
        from llmb_tui.ui.screens.jobs import JobsScreen

        self.push_screen(JobsScreen(self.services))

    def action_keys(self) -> None:
        """Show the keys that work here."""
        self.push_screen(Help(self.screen))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action of the screen that has a tooltip, and Textual's own."""
        for node, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.tooltip and binding.description and not binding.system:
                yield SystemCommand(
                    binding.description, binding.tooltip, partial(self.run_action, binding.action, node)
                )
        yield from super().get_system_commands(screen)
