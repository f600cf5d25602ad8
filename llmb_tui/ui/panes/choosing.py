"""The first two panes: workload; GPU type and precision."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from llmb_tui.ui.panes.pane import Dispatch, Pane
from llmb_tui.ui.widgets.choices import ChoiceList, FindableChoices
from llmb_tui.ui.widgets.texts import Paragraphs, fact, label
from llmb_tui.wizard.steps import StepId

if TYPE_CHECKING:
    from llmb_tui.wizard.state import WizardState


class WorkloadPane(Pane):
    """Choice of workload, release and size."""

    STEP = StepId.WORKLOAD
    FINDABLE = True

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(dispatch)
        self._list = FindableChoices(partial(self.answer, "workload"), id="workload")

    def compose(self) -> ComposeResult:
        yield label("Workload and size", "release, published GPUs", first=True)
        yield self._list
        yield label("About this workload")
        yield Paragraphs()

    def show(self, state: WizardState) -> None:
        """Show all releases. None is disabled, because this is the first question."""
        from llmb_tui.wizard.answers import value_of
        from llmb_tui.wizard.choices import choices, details

        catalog, full = state.rules.catalog, state.proposal.full
        self._list.show(choices(catalog, full, "workload"), value_of(full, "workload"))
        about = details(catalog, full)
        self.query_one(Paragraphs).parts = tuple(fact(name, text) for name, text in about)


class HardwarePane(Pane):
    """Choice of GPU type and precision."""

    STEP = StepId.HARDWARE

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(dispatch)
        self._gpus = ChoiceList(partial(self.answer, "gpu"), id="gpu")
        self._dtypes = ChoiceList(partial(self.answer, "dtype"), id="dtype")

    def compose(self) -> ComposeResult:
        yield label("GPU type", "memory, GPUs per node", first=True)
        yield self._gpus
        yield label("Precision", "dense peak per GPU")
        yield self._dtypes

    def show(self, state: WizardState) -> None:
        """Show the GPU types and precisions of all recipes; those that this one lacks are disabled with the reason."""
        from llmb_tui.wizard.answers import value_of
        from llmb_tui.wizard.choices import choices

        catalog, full = state.rules.catalog, state.proposal.full
        self._gpus.show(choices(catalog, full, "gpu"), value_of(full, "gpu"))
        self._dtypes.show(choices(catalog, full, "dtype"), value_of(full, "dtype"))
