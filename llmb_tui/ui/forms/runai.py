"""`RunaiForm`: a cluster with Run:ai. Its secret is no field: connecting asks for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from textual.content import Content

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.runai.profile import RunaiProfile, from_environment
from llmb_tui.cluster.runai.profile_fields import (
    RUNAI_MORE,
    RUNAI_REACH,
    RUNAI_USE,
    runai_profile_of,
    runai_reachable,
    runai_texts_of,
)
from llmb_tui.services import Services
from llmb_tui.ui.forms.form import ProfileForm
from llmb_tui.ui.runai_offers import offered, summary
from llmb_tui.ui.text import line, lines

if TYPE_CHECKING:
    from llmb_tui.cluster.runai.inventory import RunaiInventory


class RunaiForm(ProfileForm[RunaiProfile, "RunaiInventory"]):
    """Its fields; those of a new one hold what the recipe's variables say."""

    REACH, USE, MORE = RUNAI_REACH, RUNAI_USE, RUNAI_MORE
    HOW = "over HTTPS; the application's secret is asked when it is needed"

    def __init__(self, base: RunaiProfile | None) -> None:
        super().__init__(base or from_environment(os.environ))

    def texts_of(self, profile: RunaiProfile) -> dict[str, str]:
        return runai_texts_of(profile)

    def reachable(self) -> RunaiProfile:
        return runai_reachable(self.base, self.texts)

    def profile(self) -> RunaiProfile:
        return runai_profile_of(self.base, self.texts)

    def read(self, services: Services, profile: RunaiProfile, prompter: Prompter) -> RunaiInventory:
        from llmb_tui.cluster.runai.cluster import runai_of  # loads pydantic and certificates
        from llmb_tui.cluster.runai.inventory import read_runai

        cluster = runai_of(services.clusters.cluster(profile))
        cluster.connect(prompter)
        return read_runai(cluster)

    def take(self, offers: RunaiInventory) -> Content:
        for name, choices in offered(offers, self.texts["mounts"]).items():
            self.fields[name].offer(choices)
        unsaid = (line(("! ", "$text-warning"), words) for words in offers.not_asked)
        return lines([line(("● ", "$text-success"), summary(offers)), *unsaid])
