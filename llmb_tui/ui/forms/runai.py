"""`RunaiForm`: a cluster with Run:ai, and the offers of its project. The secret is not a field: a login asks for it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.content import Content
from textual.widgets import Input

from llmb_tui.cluster.profile_fields import parts_of
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
from llmb_tui.language.quantities import plain_number
from llmb_tui.language.text import plural
from llmb_tui.services import Services
from llmb_tui.ui.forms.form import ProfileForm
from llmb_tui.ui.text import line, lines
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.cluster.runai.cluster import RunaiInventory
    from llmb_tui.cluster.runai.values import Claim

_PULLS = ("dockerRegistry", "ngcApiKey")
_NOT_IN_A_LABEL = re.compile(r"[^a-z0-9]+")


class RunaiForm(ProfileForm[RunaiProfile, "RunaiInventory"]):
    """Fields of a Run:ai profile. Those of a new one start with the environment variables that the recipes use."""

    REACH, USE, MORE = RUNAI_REACH, RUNAI_USE, RUNAI_MORE
    ROUTES: ClassVar[dict[str, str]] = {"runai": "Run:ai, over HTTPS"}
    CONNECTION_HINT = "over HTTPS; asks for the application's secret when needed"

    def __init__(self, base: RunaiProfile | None) -> None:
        base = base or from_environment(os.environ)
        super().__init__(base, runai_texts_of(base))
        self._claims: tuple[Claim, ...] = ()

    def reachable(self) -> RunaiProfile:
        return runai_reachable(self.base, self.texts)

    def profile(self) -> RunaiProfile:
        return runai_profile_of(self.base, self.texts)

    def read(self, services: Services, profile: RunaiProfile, prompter: Prompter) -> RunaiInventory:
        from llmb_tui.cluster.runai.cluster import runai_of  # loads pydantic and certificates

        cluster = runai_of(services.clusters.cluster(profile))
        cluster.connect(prompter)
        return cluster.inventory()

    def show_offers(self, offers: RunaiInventory) -> Content:
        self._claims = offers.claims
        for name, choices in field_choices(offers, self.texts["mounts"]).items():
            self.fields[name].offer(choices)
        warnings = (line(("! ", "$text-warning"), words) for words in offers.not_asked)
        return lines(line(("● ", "$text-success"), summary(offers)), *warnings)

    def forget(self) -> None:
        super().forget()
        self._claims = ()

    @on(Input.Changed, "#profile-mounts")
    def _extend_mounts(self, event: Input.Changed) -> None:
        """Offer each claim together with the mounts that are already in the field, so that picking one keeps them."""
        if event.input.has_focus and self._claims:
            self.fields["mounts"].offer(_mounts(self._claims, parts_of(event.value)))


def summary(offers: RunaiInventory) -> str:
    """Summary of the offers in one line."""
    counts = (
        plural(len(offers.project.quotas), "node pool"),
        plural(len(offers.claims), "volume claim"),
        plural(len(offers.credentials), "credential"),
    )
    return f"connected: project {offers.project.name}, {', '.join(counts)}"


def field_choices(offers: RunaiInventory, mounts: str) -> dict[str, tuple[Choice, ...]]:
    """Choices by field of the profile. A claim is added to the `mounts` that are already entered."""
    quotas = {quota.node_pool: quota for quota in offers.project.quotas}
    names = dict.fromkeys((*quotas, *(pool.name for pool in offers.node_pools)))
    pools = []
    for name in names:
        if (quota := quotas.get(name)) is None:
            pools.append(Choice(name, name, disabled_reason="no quota for this project"))
            continue
        limit = "no limit" if quota.limit is None else f"at most {plain_number(quota.limit)}"
        detail = f"{plain_number(quota.deserved)} GPUs deserved, {limit}, {plain_number(quota.allocated)} in use"
        pools.append(Choice(name, name, detail))
    pulls = (item for item in offers.credentials if item.kind in _PULLS and item.secret)
    tokens = (item for item in offers.credentials if item.kind == "genericSecret" and item.secret)
    return {
        "node_pool": tuple(pools),
        "mounts": _mounts(offers.claims, parts_of(mounts)),
        "image_pull_secret": tuple(Choice(item.secret, item.secret, f"{item.name}, {item.kind}") for item in pulls),
        "hub_credential": tuple(Choice(item.name, item.name, f"with {', '.join(item.keys)}") for item in tokens),
    }


def _mounts(claims: tuple[Claim, ...], entered: tuple[str, ...]) -> tuple[Choice, ...]:
    """A choice for each claim that is not mounted yet, and one for all of them."""
    mounted = {mount.rpartition(":")[2] for mount in entered}
    new = {mount_of(claim): claim for claim in claims if claim.claim not in mounted}
    choices = [
        Choice(
            ", ".join((*entered, mount)),
            mount,
            f"{claim.name}, {claim.status}" if claim.status else claim.name,
            None if claim.is_usable else f"{claim.status} {claim.message}".rstrip(),
        )
        for mount, claim in new.items()
    ]
    usable = [mount for mount, claim in new.items() if claim.is_usable]
    if len(usable) > 1:
        choices.append(Choice(", ".join((*entered, *usable)), f"all {len(usable)}"))
    return tuple(choices)


def mount_of(claim: Claim) -> str:
    """A claim as `NAME:PATH:CLAIM`."""
    name = _NOT_IN_A_LABEL.sub("-", claim.name.lower()).strip("-")[:63].rstrip("-") or "data"
    return f"{name}:{claim.path or f'/{name}'}:{claim.claim}"
