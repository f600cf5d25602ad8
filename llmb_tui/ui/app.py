"""`LlmbApp`: wires the screens. What they do is theirs."""

# ruff: noqa: PLC0415 - nothing heavy is imported before the first frame
from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.ui.dialogs import Help
from llmb_tui.ui.panes.install import InstallPane
from llmb_tui.ui.prompter import Ask, ModalPrompter
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.text import tell


class PassedOver(Message):
    """A file of the user's own cannot be used."""

    def __init__(self, problem: Trouble) -> None:
        super().__init__()
        self.problem = problem


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
        self._also_told = services.on_broken_file
        services.on_broken_file = self._hear_of_broken_file

    def get_default_screen(self) -> Screen[None]:
        """The wizard."""
        return WizardScreen(self.services, self.prompter)

    def _hear_of_broken_file(self, problem: Trouble) -> None:
        """In any thread: a file of the user's own was passed over."""
        if self._also_told is not None:
            self._also_told(problem)
        self.post_message(PassedOver(problem))

    def on_passed_over(self, event: PassedOver) -> None:
        """Say which file, and why."""
        tell(self, f"Passed over: {event.problem}", "warning")

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

    def on_app_blur(self) -> None:
        """Another window is in front: the clusters are asked less often."""
        self.services.attend(False)

    def on_app_focus(self) -> None:
        """Somebody looks again: what changed meanwhile is asked for at once."""
        self.services.attend(True)

    def on_wizard_screen_open_run(self, event: WizardScreen.OpenRun) -> None:
        """Show one run."""
        from llmb_tui.ui.screens.run import RunScreen

        self.push_screen(RunScreen(self.services, event.run_id))

    def on_install_pane_keys(self, event: InstallPane.Keys) -> None:
        """Show the keys that an install may need."""
        from llmb_tui.ui.screens.keys import KeysDialog

        self.prompter.quiet = False
        self.push_screen(KeysDialog(self.services, event.profile_name, event.plan, event.procedure, event.wanted))

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
