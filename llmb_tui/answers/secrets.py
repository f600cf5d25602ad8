"""`keys_on_cluster`: the API keys on a cluster, the keys that a run needs, and the answers of the servers to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Fact, Grid, Section, known
from llmb_tui.answers.table import Column, Table

if TYPE_CHECKING:
    from llmb_tui.preflight.access import SecretState, SecretTest
    from llmb_tui.preflight.secret import SecretNeed


def _place(state: SecretState) -> str:
    if state.on_cluster:
        return "given by llmb-tui"
    return "one of your own" if state.own else "none"


_STATE: tuple[Column, ...] = (
    Column("secret", "id"),
    Column("", "title"),
    Column("on the cluster", _place),
    Column("keyring", lambda state: "kept" if state.in_keyring else ""),
)


def keys_on_cluster(
    cluster: str, states: Sequence[SecretState], needs: Sequence[SecretNeed], tests: Sequence[SecretTest]
) -> Answer:
    """The keys on a cluster; `tests` has the answer of the servers for each of `needs`."""
    return Answer(
        f"API keys on {cluster}",
        lambda: (Grid("", Table.by(_STATE, states)), *_needs(needs, tests)),
        lambda: {
            "secrets": [asdict(state) for state in states],
            "needs": [asdict(need) for need in needs],
            "tests": [asdict(test) for test in tests],
        },
    )


def _needs(needs: Sequence[SecretNeed], tests: Sequence[SecretTest]) -> Iterator[Block]:
    for need, test in zip(needs, tests, strict=True):
        facts = known(
            Fact("why", need.why), Fact("how long", need.how_long), Fact("test", f"{test.words} {test.fix}".rstrip())
        )
        yield Section(f"{need.title}: {'needed' if need.required else 'optional'}", (facts,))
