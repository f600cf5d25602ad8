"""The first two panes: workload; GPU type and precision."""

from __future__ import annotations

from functools import partial

from textual.app import ComposeResult

from llmb_tui.ui.panes.pane import Give, Pane, label
from llmb_tui.ui.text import line
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.choices import ChoiceList, FindableChoices
from llmb_tui.ui.widgets.paragraphs import Paragraphs, fact
from llmb_tui.wizard.answers import value_of
from llmb_tui.wizard.choices import choices, details
from llmb_tui.wizard.steps import StepId


class WorkloadPane(Pane):
    """Which workload, release and size."""

    STEP = StepId.WORKLOAD
    FINDABLE = True

    def __init__(self, give: Give) -> None:
        super().__init__(give)
        self._list = FindableChoices(partial(give, "workload"), id="workload")

    def compose(self) -> ComposeResult:
        """One list of everything that is published."""
        yield label("Workload and size", "release, published GPUs")
        yield self._list
        yield label("About it")
        yield Paragraphs()

    def show(self, view: View) -> None:
        """All releases; none is impossible, because this is the first question."""
        found = choices(view.catalog, view.answers, "workload")
        self._list.show(found, value_of(view.full, "workload"))
        about = details(view.catalog, view.answers)
        self.query_one(Paragraphs).parts = tuple(fact(name, line(text)) for name, text in about)


class HardwarePane(Pane):
    """Which GPU type and which precision."""

    STEP = StepId.HARDWARE

    def __init__(self, give: Give) -> None:
        super().__init__(give)
        self._gpus = ChoiceList(partial(give, "gpu"), id="gpu")
        self._dtypes = ChoiceList(partial(give, "dtype"), id="dtype")

    def compose(self) -> ComposeResult:
        """Two short lists."""
        yield label("GPU type", "memory, GPUs in one node")
        yield self._gpus
        yield label("Precision", "dense peak of one GPU")
        yield self._dtypes

    def show(self, view: View) -> None:
        """Every type and precision that any recipe knows; what this one does not have carries the reason."""
        self._gpus.show(choices(view.catalog, view.answers, "gpu"), value_of(view.full, "gpu"))
        self._dtypes.show(choices(view.catalog, view.answers, "dtype"), value_of(view.full, "dtype"))
