"""`SuiteForm`: the form of a suite: kind, varied values, numbers, chain and name."""

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
    "layouts": ("Layouts", "l: fastest"),
}
_NUMBERS: dict[Number, str] = {
    "count": "repeats",
    "at_most": "at a time",
    "stop_after": "stop after",
    "shuffle": "seed",
}
_HINTS: dict[Number, str] = {"at_most": "all", "stop_after": "never", "shuffle": "no shuffle"}
_USUAL_COUNT: dict[SuiteKind, int] = {"repeat": REPEATS, "tune": LAYOUTS}
_LONGEST_NAME = 80


class SuiteForm(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Shows a draft, and reports a new draft after each answer."""

    def __init__(self, report: Callable[[SuiteDraft], None]) -> None:
        super().__init__(id="suite-form")
        self._report = report
        self._draft: SuiteDraft | None = None
        self._offers: Mapping[Axis, Sequence[Offer]] = {}
        self._kinds = ChoiceList(self._choose_kind, id="suite-kind")
        self._axes = {axis: Switches(self._switch, id=f"suite-{axis}") for axis in _AXES}
        self._numbers = {
            name: TextField(partial(self._set_number, name), id=f"suite-{name.replace('_', '-')}", digits=4)
            for name in _NUMBERS
        }
        self._name_field = TextField(self._set_name, id="suite-name", max_length=_LONGEST_NAME)
        self._chain = Switches(self._switch, id="suite-chain")

    def compose(self) -> ComposeResult:
        yield label("Kind", first=True)
        yield self._kinds
        yield Static(id="suite-unavailable", markup=False)
        yield Static(id="suite-sentence", markup=False)
        with Vertical(id="suite-axes"):
            for axis, (title, hint) in _AXES.items():
                yield label(title, hint)
                yield self._axes[axis]
        yield label("Repeats and submission")
        for name, field in self._numbers.items():
            with Horizontal(classes="field"):
                yield Static(f"  {_NUMBERS[name]}", classes="name", id=f"suite-{name.replace('_', '-')}-name")
                yield field
        yield self._chain
        with Horizontal(classes="field"):
            yield Static("  name", classes="name")
            yield self._name_field

    def focus_first(self) -> None:
        (self._axes["scales"] if self.query_one("#suite-axes").display else self._kinds).focus()

    def arrive_at(self, axis: Axis) -> None:
        """Focus the switches of one axis."""
        self._axes[axis].focus()

    def show_kinds(self, kinds: Sequence[tuple[SuiteKind, str, str]]) -> None:
        """Show the kinds of suites as (kind, sentence, reason), with the reason if one is unavailable."""
        chosen = self._draft.kind if self._draft else "custom"
        rows = (Choice(kind, kind, "", reason or None) for kind, _, reason in kinds)
        self._kinds.show(tuple(rows), chosen)
        # The list has no room for whole reasons, and the cursor skips unavailable kinds.
        kinds_by_reason: dict[str, list[str]] = {}
        for kind, _, reason in kinds:
            if reason:
                kinds_by_reason.setdefault(reason, []).append(kind)
        unavailable = self.query_one("#suite-unavailable", Static)
        reasons = (line((f"– {', '.join(names)}: {why}", MUTED)) for why, names in kinds_by_reason.items())
        unavailable.update(lines(*reasons))
        unavailable.display = bool(kinds_by_reason)

    def show(self, draft: SuiteDraft, offers: Mapping[Axis, Sequence[Offer]], name: str) -> None:
        """Show a draft. A field with the focus keeps its text. `name`: the name of the suite if the user gives none."""
        self._draft, self._offers = draft, offers
        is_custom = draft.kind == "custom"
        set_text(self.query_one("#suite-sentence", Static), line((SUITE_KINDS[draft.kind], MUTED)))
        self.query_one("#suite-axes").display = is_custom
        for axis, switches in self._axes.items():
            if is_custom:
                switches.show(tuple(_switch(axis, index, offer) for index, offer in enumerate(offers[axis])))
        self._chain.show((Switch("chain", "chain", "one after another", draft.chain),))
        tune = draft.kind == "tune"
        set_text(self.query_one("#suite-count-name", Static), "  layouts" if tune else "  repeats")
        for field_name, field in self._numbers.items():
            value = getattr(draft, field_name)
            field.put("" if value is None else str(value))
            field.placeholder = _HINTS.get(field_name) or str(_USUAL_COUNT.get(draft.kind, 1))
        self._name_field.put(draft.name)
        self._name_field.placeholder = clean_line(name)

    def _choose_kind(self, kind: str) -> None:
        """Take another kind, which has other rows: none of them is excluded."""
        new_kind = next((known for known in SUITE_KINDS if known == kind), None)
        if self._draft is not None and new_kind is not None:
            self._report(replace(self._draft, kind=new_kind, excluded=frozenset()))
            self._kinds.show(self._kinds.shown, kind)

    def _switch(self, field: str, value: str) -> None:
        if self._draft is None:
            return
        if field == "chain":
            self._report(replace(self._draft, chain=value == ON))
            return
        name, _, index = field.partition(" ")
        axis = next(known for known in _AXES if known == name)
        self._report(switched(self._draft, axis, self._offers[axis], self._offers[axis][int(index)].value))

    def _set_number(self, name: Number, text: str) -> None:
        if self._draft is not None:
            self._report(with_number(self._draft, name, int(text) if text.isdecimal() else None))

    def _set_name(self, text: str) -> None:
        if self._draft is not None:
            self._report(replace(self._draft, name=clean_line(text).strip()))


def _switch(axis: Axis, index: int, offer: Offer) -> Switch:
    return Switch(f"{axis} {index}", f"{offer.label} ", offer.detail, offer.chosen, offer.disabled_reason)
