"""The answers to `disk`: the items on a cluster, and the outcome of a removal."""

from __future__ import annotations

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.disk import ITEM_COLUMNS, disk, removal
from llmb_tui.answers.table import Table, toned_text
from llmb_tui.answers.writers.rows import rows
from llmb_tui.cluster_files.housekeeping import InstallItem, Removal

SMALL = InstallItem("image", "images/a.sqsh", size=2_000_000)
LARGE = InstallItem("run", "experiments/e", ("r1", "r2"), "Run r1 is active.", 3_000_000_000)
UNKNOWN = InstallItem("cache", "cache/x")
ITEMS = (SMALL, LARGE, UNKNOWN)


def lines(answer: Answer) -> list[str]:
    return [row.text for row in rows(answer.make_blocks())]


def test_the_largest_item_is_first_and_a_kept_item_has_its_reason() -> None:
    heading, *shown, _, total, _, more = lines(disk("eos", "/lustre/llmb", ITEMS, 2))
    assert heading.split() == ["size", "kind", "run", "name", "kept", "because"]
    assert [line.split()[0] for line in shown] == ["3", "2", "–"]
    assert shown[0].endswith("r1 r2  experiments/e  Run r1 is active.")
    assert total == "In /lustre/llmb: 3 items, 3 GB or more; 2 MB or more can be removed."
    assert more == "· note: 2 further items not listed: the name is unknown, or the limit of the list is reached."


def test_a_kept_item_is_quiet_in_every_cell() -> None:
    small, large = ([toned_text(cell)[1] for cell in row] for row in Table.by(ITEM_COLUMNS, (SMALL, LARGE)).rows)
    assert set(large) == {"quiet"}
    assert small == ["plain", "plain", "quiet", "plain"], "it has no run"


def test_an_empty_directory_has_no_table() -> None:
    answer = disk("eos", "/lustre/llmb", (), 0)
    assert not any(isinstance(block, Grid) for block in answer.make_blocks())
    assert lines(answer) == ["In /lustre/llmb: 0 items, 0 bytes; 0 bytes can be removed."]


def test_a_removal_lists_the_removed_items_and_the_reasons_for_the_others() -> None:
    done = Removal(("images/a.sqsh",), {"experiments/e": "Run r1 is active."}, "Not everything could be deleted.")
    assert [line for line in lines(removal("eos", done)) if line] == [
        "1 item removed.",
        "· images/a.sqsh",
        "! warning: experiments/e was not removed. Run r1 is active.",
        "! warning: Not everything could be deleted. Continue with `llmb-tui disk eos --remove trash`.",
    ]
