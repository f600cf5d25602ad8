"""The answers to `disk`: what is there, and what a removal left."""

from __future__ import annotations

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.disk import THING, disk, removal
from llmb_tui.answers.table import Table, toned_text
from llmb_tui.answers.writers.rows import rows
from llmb_tui.cluster_files.housekeeping import InstallItem, Removal

SMALL = InstallItem("image", "images/a.sqsh", size=2_000_000)
LARGE = InstallItem("run", "experiments/e", ("r1", "r2"), "Run r1 is active.", 3_000_000_000)
UNKNOWN = InstallItem("cache", "cache/x")
THINGS = (SMALL, LARGE, UNKNOWN)


def lines(answer: Answer) -> list[str]:
    return [row.text for row in rows(answer.make_blocks())]


def test_the_largest_is_first_and_a_thing_that_stays_says_why() -> None:
    heading, *shown, _, total, _, more = lines(disk("eos", "/lustre/llmb", THINGS, 2))
    assert heading.split() == ["size", "what", "run", "name", "stays", "because"]
    assert [line.split()[0] for line in shown] == ["3", "2", "–"]
    assert shown[0].endswith("r1 r2  experiments/e  Run r1 is active.")
    assert total == "Below /lustre/llmb: 3 things, 3 GB or more; 2 MB or more of it can be removed."
    assert more == "· note: 2 things more are not listed: of other names, or too many."


def test_a_thing_that_stays_is_quiet_in_every_cell() -> None:
    small, large = ([toned_text(cell)[1] for cell in row] for row in Table.by(THING, (SMALL, LARGE)).rows)
    assert set(large) == {"quiet"}
    assert small == ["plain", "plain", "quiet", "plain"], "it has no run"


def test_nothing_there_is_said_without_a_table() -> None:
    answer = disk("eos", "/lustre/llmb", (), 0)
    assert not any(isinstance(block, Grid) for block in answer.make_blocks())
    assert lines(answer) == ["Below /lustre/llmb: 0 things, 0 bytes; 0 bytes of it can be removed."]


def test_a_removal_names_what_went_and_why_the_rest_stays() -> None:
    done = Removal(("images/a.sqsh",), {"experiments/e": "Run r1 is active."}, "Not everything could be deleted.")
    assert [line for line in lines(removal("eos", done)) if line] == [
        "1 thing removed.",
        "· images/a.sqsh",
        "! warning: experiments/e stays. Run r1 is active.",
        "! warning: Not everything could be deleted. Continue with `llmb-tui disk eos --remove trash`.",
    ]
