"""`Found`: everything that was learned about one cluster for one selection, at one moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from llmb_tui.wizard.steps import Facts

if TYPE_CHECKING:
    from llmb_tui.cluster.preflight.report import Check, Preflight
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.errors import Trouble
    from llmb_tui.launch.install import StepState
    from llmb_tui.launch.run import Run
    from llmb_tui.launch.secret import SecretId
    from llmb_tui.plan.selection import Procedure, Selection
    from llmb_tui.services import Draft
    from llmb_tui.ui.launching import Launching


Doing = Literal["look", "install", "render", "submit"]
Link = Literal["none", "unknown", "connecting", "connected", "failed"]
# What holds for other answers too.
_OF_LINK = ("link", "banner")
_OF_LAUNCH = ("launching",)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked of a cluster for."""

    profile: ClusterProfile
    selection: Selection
    procedure: Procedure = "direct"


@dataclass(frozen=True, slots=True)
class Found:
    """A snapshot that the panes render. Another selection or procedure keeps the connection and forgets the rest."""

    profile: ClusterProfile | None = None
    selection: Selection | None = None
    link: Link = "none"
    doing: frozenset[Doing] = frozenset()
    """What threads are busy with."""
    banner: str = ""
    preflight: Preflight | None = None
    checked: Preflight | None = None
    """The checks that are known while others are still being made; gates nothing."""
    steps: tuple[StepState, ...] = ()
    draft: Draft | None = None
    launched: Run | None = None
    trouble: Trouble | None = None
    """What last went wrong, until it is tried again."""
    failed: Doing | None = None
    """What it was that went wrong."""
    procedure: Procedure = "direct"
    commits: Check | None = None
    """Whether the commits that the published procedure takes are public, where it is not the chosen one."""
    launching: Launching | None = None
    """The submission that is on its way, for these answers or for others."""

    def about(
        self, profile: ClusterProfile | None, selection: Selection | None, procedure: Procedure = "direct"
    ) -> Found:
        """What still holds when the cluster, the selection or the procedure is another one."""
        if profile != self.profile:
            link: Link = "unknown" if profile else "none"
            return Found(profile, selection, link, procedure=procedure, launching=self.launching)
        if (selection, procedure) != (self.selection, self.procedure):
            kept = {field: getattr(self, field) for field in (*_OF_LINK, *_OF_LAUNCH)}
            return Found(profile, selection, procedure=procedure, **kept)
        return self

    @property
    def subject(self) -> Subject | None:
        """What it was learned for; None without a cluster or a selection."""
        return Subject(self.profile, self.selection, self.procedure) if self.profile and self.selection else None

    def learned(self, changes: dict[str, Any]) -> Found:
        """The same with these fields changed."""
        return replace(self, **changes)

    def heard(self, subject: Subject, job: Doing, changes: dict[str, Any], over: bool) -> Found:
        """With what a job says that was begun for a subject.

        Where that is another one by now, only what it says of the connection holds, and of a launch.
        """
        if subject == self.subject:
            return self.learned({**changes, "doing": self.doing - {job} if over else self.doing | {job}})
        known = (*_OF_LAUNCH, *(_OF_LINK if subject.profile == self.profile else ()))
        return self.learned({field: value for field, value in changes.items() if field in known})

    def trouble_of(self, doing: Doing) -> Trouble | None:
        """What went wrong while this was done."""
        return self.trouble if self.failed == doing else None

    @property
    def installed(self) -> bool:
        """Every install step is done."""
        return bool(self.steps) and all(step.status == "done" for step in self.steps)

    @property
    def key_would_help(self) -> SecretId | None:
        """The key with which a step that failed may work."""
        return next((step.key_would_help for step in self.steps if step.key_would_help), None)

    @property
    def comes_first(self) -> str:
        """What has to be done before a run can be submitted; empty when nothing has to."""
        facts = self.facts()
        if facts is None or not facts.ready:
            return "The cluster is not ready: step 4 comes first."
        return "" if self.installed else "The install is not whole: step 5 comes first."

    def facts(self) -> Facts | None:
        """What the wizard's rules need of it."""
        if self.profile is None or self.selection is None:
            return None
        failed = None
        if self.preflight is not None:
            failed = tuple(check.title for check in self.preflight.checks if check.status == "failed")
        broken = next((step for step in self.steps if step.status == "failed"), None)
        return Facts(
            connected=self.link == "connected",
            link_note=self.trouble.what if self.trouble and self.link == "failed" else "",
            failed_checks=failed,
            install=self._install(),
            install_note=broken.detail or broken.title if broken else "",
            launched=self.launched is not None,
        )

    def _install(self) -> Literal["unknown", "missing", "running", "done", "failed"]:
        if "install" in self.doing or any(step.status == "running" for step in self.steps):
            return "running"
        if not self.steps:
            return "unknown"
        if self.installed:
            return "done"
        return "failed" if any(step.status == "failed" for step in self.steps) else "missing"
