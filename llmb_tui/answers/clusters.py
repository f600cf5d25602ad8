"""`saved_clusters`: the clusters that the user has saved."""

from __future__ import annotations

from collections.abc import Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.table import Column, Table
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profiles import profile_document

_PROFILE: tuple[Column, ...] = (
    Column("cluster", "name"),
    Column("reached at", "place"),
    Column("runs in", "share"),
    Column("directory", "directory"),
    Column("", lambda profile: profile.notice or ""),
)


def saved_clusters(profiles: Sequence[ClusterProfile]) -> Answer:
    """The clusters of these profiles."""
    return Answer(
        "Saved clusters",
        lambda: (Grid("", Table.by(_PROFILE, profiles)),),
        lambda: [*map(profile_document, profiles)],
    )
