"""`LlmbApp`: opens and connects the screens."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import constants
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme

from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.store.settings import Settings, keep_theme
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.failure_dialogs import FailureDialogs
from llmb_tui.ui.prompter import ModalPrompter
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.text import notify

if TYPE_CHECKING:
    from llmb_tui.ui.screens.jobs import JobsScreen


class LlmbApp(FailureDialogs):
    """The program on a terminal. The wizard is the first screen; others open over it."""

    TITLE = "llmb-tui"
    CSS_PATH = "app.tcss"
    ALLOW_IN_MAXIMIZED_VIEW = "KeyBar"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "question_mark", "keys", "Help", key_display="?", id="app.help", tooltip="Show the keys and their effects"
        ),
        Binding("q", "quit", "Quit", show=False, id="app.quit", tooltip="Quit the program; runs on clusters continue"),
    ]

    def __init__(self, services: Services) -> None:
        # Textual's log, key log and developer console would contain text typed into a secret field.
        vars(constants).update(LOG_FILE=None, DEBUG=False)
        super().__init__()
        # Each frame of an animation is painted and sent, often over the user's SSH connection.
        self.animation_level = "none"
        self.devtools = None
        self.services = services
        services.interactive = True
        self.prompter = ModalPrompter(self)
        self._current_theme = ""
        self._next_handler = services.on_broken_file
        services.on_broken_file = self._warn_of_broken_file

    def on_mount(self) -> None:
        settings = self.services.settings
        if settings.theme and settings.theme in self.available_themes:
            self.theme = settings.theme
        self._current_theme = self.theme
        self.set_keymap(settings.keys)
        self.theme_changed_signal.subscribe(self, self._keep_theme)
        if settings != Settings():
            self.call_after_refresh(self._check_settings)

    def _check_settings(self) -> None:
        from llmb_tui.ui.screen_settings import screen_faults

        for key, reason in screen_faults(self.services.settings):
            notify(self, f"{key}: {reason}", "warning")

    @background()
    async def _keep_theme(self, theme: Theme) -> None:
        if theme.name == self._current_theme:
            return
        self._current_theme = theme.name
        try:
            await run_in_thread(keep_theme, self.services.places.settings, theme.name)
        except LlmbError as error:
            notify(self, f"The theme was not saved. {error}", "warning")

    def _fatal_error(self) -> None:
        """Show an unhandled error without the values of variables, which Textual would print. Called by Textual."""
        from llmb_tui.crash import report_of

        error = sys.exc_info()[1]
        if error is not None and not self._exit_renderables:
            self.panic(Text(report_of(error)))
            self._return_code = 2

    def get_default_screen(self) -> Screen[None]:
        return WizardScreen(self.services, self.prompter)

    def _warn_of_broken_file(self, problem: LlmbError) -> None:
        """Warn of a user's file that was skipped. Any thread may call this."""
        if self._next_handler is not None:
            self._next_handler(problem)
        self.call_later(notify, self, f"Skipped: {problem}", "warning")

    def on_unmount(self) -> None:
        """Release threads that wait for an answer, so that the program can end."""
        self.prompter.give_up()
        self.services.close()

    def on_app_blur(self) -> None:
        """Poll the clusters less often while the terminal has no focus."""
        self.services.clusters.set_focused(False)

    def on_app_focus(self) -> None:
        """Poll the clusters at once, and as often as before."""
        self.services.clusters.set_focused(True)

    def on_wizard_screen_started(self) -> None:
        """Exempt presets and widgets from garbage collection: a full collection would delay a key by 60 ms."""
        gc.collect()
        gc.freeze()
        gc.enable()

    def action_jobs(self) -> None:
        from llmb_tui.ui.screens.jobs import JobsScreen

        self.push_screen(JobsScreen(self.services, self.prompter))

    def on_jobs_screen_run_again_requested(self, event: JobsScreen.RunAgainRequested) -> None:
        """Close all screens above the wizard, including a dialog that a thread waits for, and take a run's settings."""
        while not isinstance(self.screen, WizardScreen):
            self.screen.dismiss(None)
        self.screen.run_again(event.run)

    @background(group="suites", exclusive=True)
    async def action_suites(self) -> None:
        from llmb_tui.ui.screens.suite_watch import SuiteWatchScreen
        from llmb_tui.ui.screens.suites import SuitesScreen

        if suite_id := await self.push_screen_wait(SuitesScreen(self.services)):
            self.push_screen(SuiteWatchScreen(self.services, self.prompter, suite_id))

    def action_results(self) -> None:
        from llmb_tui.ui.screens.results import ResultsScreen

        self.push_screen(ResultsScreen(self.services, self.prompter))

    def action_keys(self) -> None:
        from llmb_tui.ui.dialogs import HelpDialog

        self.push_screen(HelpDialog(self.screen))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Commands of the palette: each enabled action of the screen that has a tooltip, then Textual's."""
        for node, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.tooltip and binding.description and not binding.system:
                act = partial(self.run_action, binding.action, node)
                yield SystemCommand(binding.description, binding.tooltip, act)
        yield from super().get_system_commands(screen)
