"""`SuiteForm`: what of a suite can be chosen: its kind, what multiplies, and how it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Static

from llmb_tui.language.text import clean_line
from llmb_tui.plan.selection import ON
from llmb_tui.suites.draft import Axis, Number, Offer, SuiteDraft, switched, with_number
from llmb_tui.suites.ready_made import LAYOUTS, REPEATS
from llmb_tui.suites.suite import SUITE_KINDS, SuiteKind
from llmb_tui.ui.text import MUTED, line, lines, set_text
from llmb_tui.ui.widgets.choices import ChoiceList, Switches, TextField
from llmb_tui.ui.widgets.texts import label
from llmb_tui.wizard.choices import Choice, Switch

_AXES: dict[Axis, tuple[str, str]] = {
    "scales": ("GPUs", ""),
    "dtypes": ("Precisions", ""),
    "workloads": ("Workloads", ""),
    "layouts": ("Layouts", "l: the fastest"),
}
_TITLES: dict[SuiteKind, str] = {"custom": "my own"}
_NUMBERS: dict[Number, str] = {
    "count": "repeats",
    "at_most": "at a time",
    "stop_after": "stop after",
    "shuffle": "shuffle",
}
_HINTS: dict[Number, str] = {"at_most": "all", "stop_after": "never", "shuffle": "no: a seed"}
_USUAL_COUNT: dict[SuiteKind, int] = {"repeat": REPEATS, "tune": LAYOUTS}
_LONGEST_NAME = 80


class SuiteForm(VerticalScroll, can_focus=False, inherit_bindings=False):
    """It shows a draft, and gives another one at each answer."""

    def __init__(self, give: Callable[[SuiteDraft], None]) -> None:
        super().__init__(id="suite-form")
        self._give = give
        self._draft: SuiteDraft | None = None
        self._offers: Mapping[Axis, Sequence[Offer]] = {}
        self._kinds = ChoiceList(self._choose_kind, id="suite-kind")
        self._axes = {axis: Switches(self._switch, id=f"suite-{axis}") for axis in _AXES}
        self._numbers = {
            name: TextField(partial(self._number, name), id=f"suite-{name.replace('_', '-')}", digits=4)
            for name in _NUMBERS
        }
        self._called_so = TextField(self._called, id="suite-name", max_length=_LONGEST_NAME)
        self._chain = Switches(self._switch, id="suite-chain")

    def compose(self) -> ComposeResult:
        yield label("Kind", first=True)
        yield self._kinds
        yield Static(id="suite-not-to-be-had", markup=False)
        yield Static(id="suite-sentence", markup=False)
        with Vertical(id="suite-axes"):
            for axis, (title, hint) in _AXES.items():
                yield label(title, hint)
                yield self._axes[axis]
        yield label("How often, and how it is sent")
        for name, field in self._numbers.items():
            with Horizontal(classes="field"):
                yield Static(f"  {_NUMBERS[name]}", classes="name", id=f"suite-{name.replace('_', '-')}-name")
                yield field
        yield self._chain
        with Horizontal(classes="field"):
            yield Static("  name", classes="name")
            yield self._called_so

    def focus_first(self) -> None:
        (self._axes["scales"] if self.query_one("#suite-axes").display else self._kinds).focus()

    def arrive_at(self, axis: Axis) -> None:
        """Put the focus on one of those that multiply."""
        self._axes[axis].focus()

    def show_kinds(self, kinds: Sequence[tuple[SuiteKind, str, str]]) -> None:
        """What suites there are, and why one cannot be had."""
        chosen = self._draft.kind if self._draft else "custom"
        rows = (Choice(kind, _TITLES.get(kind, kind), "", why_not or None) for kind, _, why_not in kinds)
        self._kinds.show(tuple(rows), chosen)
        # The list has no room for the whole reason, and the cursor passes by what cannot be chosen.
        reasons = dict.fromkeys(why_not for *_, why_not in kinds if why_not)
        named = [(", ".join(kind for kind, _, why_not in kinds if why_not == reason), reason) for reason in reasons]
        said = self.query_one("#suite-not-to-be-had", Static)
        said.update(lines(*(line((f"– {names}: {reason}", MUTED)) for names, reason in named)))
        said.display = bool(named)

    def show(self, draft: SuiteDraft, offers: Mapping[Axis, Sequence[Offer]], name: str) -> None:
        """Render a draft. A typed field keeps its text while it is typed in; `name` is what it is called unasked."""
        self._draft, self._offers = draft, offers
        own = draft.kind == "custom"
        set_text(self.query_one("#suite-sentence", Static), line((SUITE_KINDS[draft.kind], MUTED)))
        self.query_one("#suite-axes").display = own
        for axis, switches in self._axes.items():
            if own:
                switches.show(tuple(_switch(axis, at, offer) for at, offer in enumerate(offers[axis])))
        self._chain.show((Switch("chain", "chain", "each after the one before", draft.chain),))
        tune = draft.kind == "tune"
        set_text(self.query_one("#suite-count-name", Static), "  layouts" if tune else "  repeats")
        for field_name, field in self._numbers.items():
            value = getattr(draft, field_name)
            field.put("" if value is None else str(value))
            field.placeholder = _HINTS.get(field_name) or str(_USUAL_COUNT.get(draft.kind, 1))
        self._called_so.put(draft.name)
        self._called_so.placeholder = clean_line(name)

    def _choose_kind(self, kind: str) -> None:
        """Rows of another kind are others, and so are those that are out."""
        found = next((one for one in SUITE_KINDS if one == kind), None)
        if self._draft is not None and found is not None:
            self._give(replace(self._draft, kind=found, excluded=frozenset()))
            self._kinds.show(self._kinds.shown, kind)

    def _switch(self, field: str, value: str) -> None:
        if self._draft is None:
            return
        if field == "chain":
            self._give(replace(self._draft, chain=value == ON))
            return
        name, _, at = field.partition(" ")
        axis = next(one for one in _AXES if one == name)
        self._give(switched(self._draft, axis, self._offers[axis], self._offers[axis][int(at)].value))

    def _number(self, name: Number, text: str) -> None:
        if self._draft is not None:
            self._give(with_number(self._draft, name, int(text) if text.isdecimal() else None))

    def _called(self, text: str) -> None:
        if self._draft is not None:
            self._give(replace(self._draft, name=clean_line(text).strip()))


def _switch(axis: Axis, at: int, offer: Offer) -> Switch:
    return Switch(f"{axis} {at}", f"{offer.label} ", offer.detail, offer.chosen, offer.why_not)
