"""States as people read them: each set of states once, and the word, the glyph and the tone of each state.

The members of a set are data: they stand in files, JSON, CSV and flags. A label is what a screen, a table or a report
shows; two states of one set that differ in tone differ in glyph, so that no colour is needed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Tone = Literal["plain", "quiet", "active", "good", "warning", "bad"]
"""Weight of a state; a screen or a paper gives it a colour."""


class Label(NamedTuple):
    """A state as people read it."""

    word: str
    glyph: str
    tone: Tone

    @property
    def text(self) -> str:
        """Glyph and word: `✓ done`."""
        return f"{self.glyph} {self.word}"


Submission = Literal["intended", "submitted", "refused", "withdrawn", "unknown"]
"""Of a run. `unknown`: the answer was lost. `withdrawn`: it has no job, and never will."""
Stage = Literal[
    "submitted",
    "queued",
    "image",
    "start",
    "warm-up",
    "measuring",
    "suspended",
    "completing",
    "done",
    "failed",
    "timeout",
    "node_fail",
    "cancelled",
]
"""Of a submitted run. `submitted`: its cluster was not asked about it yet."""
RunStateName = Submission | Stage
"""The submission of a run until it has a job, then its stage."""


def state_label(state: RunStateName) -> Label:  # noqa: PLR0911 - one for each look
    """The label of a run's submission or stage."""
    match state:
        case "intended":
            return Label("not submitted", "○", "quiet")
        case "refused":
            return Label("rejected", "✗", "bad")
        case "withdrawn":
            return Label("withdrawn", "✗", "bad")
        case "unknown":
            return Label("unknown", "?", "warning")
        case "submitted":
            return Label("submitted", "●", "active")
        case "queued":
            return Label("queued", "◌", "quiet")
        case "image" | "start" | "warm-up" | "measuring" | "completing":
            return Label(state, "●", "active")
        case "suspended":
            return Label("suspended", "‖", "warning")
        case "done":
            return Label("done", "✓", "good")
        case "failed" | "timeout":
            return Label(state, "✗", "bad")
        case "node_fail":
            return Label("node fail", "✗", "bad")
        case "cancelled":
            return Label("cancelled", "■", "quiet")


RowStanding = Literal["not sent", "unknown", "waiting", "running", "done", "refused", "failed", "cancelled"]
"""Of a suite's row. `unknown`: whether it has a job is not known, or what is here of its run cannot be read. `waiting`:
in the queue. `done`: it ran to its end. `refused`: it has no job, and is sent again when the suite is submitted again.
`failed`: it ended badly. `cancelled`: by a person, or withdrawn before it was sent."""


def row_label(standing: RowStanding) -> Label:
    """The label of a suite's row, in the words of its run."""
    match standing:
        case "not sent":
            return state_label("intended")
        case "waiting":
            return state_label("queued")
        case "running":
            return Label("running", "●", "active")
        case "unknown" | "done" | "refused" | "failed" | "cancelled":
            return state_label(standing)


VerdictResult = Literal["PASS", "WARN", "FAIL"]


def verdict_label(result: VerdictResult) -> Label:
    """The label of a verdict."""
    match result:
        case "PASS":
            return Label(result, "✓", "good")
        case "WARN":
            return Label(result, "!", "warning")
        case "FAIL":
            return Label(result, "✗", "bad")


RunLink = Literal["live", "connecting", "lost", "closed"]
"""Of a run that is watched: the connection over which its log and its job are read."""
LinkState = RunLink | Literal["needs-login"]
"""Of the connection to a cluster. `needs-login`: it broke, and the cluster asks a question before it lets us in."""


def link_label(state: LinkState) -> Label:
    """The label of a connection that was made once."""
    match state:
        case "live":
            return Label("live", "●", "good")
        case "connecting":
            return Label("connecting", "◐", "warning")
        case "lost":
            return Label("link lost", "✗", "bad")
        case "needs-login":
            return Label("log in again", "✗", "bad")
        case "closed":
            return Label("closed", "○", "quiet")


ProbeState = Literal["none", "unknown", "connecting", "connected", "failed"]
"""Of the wizard's cluster. `none`: no cluster is chosen. `unknown`: it was not connected to yet."""


def probe_label(state: ProbeState) -> Label:
    """The label of the wizard's cluster."""
    match state:
        case "none":
            return Label("no cluster", "○", "quiet")
        case "unknown":
            return Label("not connected", "○", "quiet")
        case "connecting":
            return link_label("connecting")
        case "connected":
            return Label("connected", "●", "good")
        case "failed":
            return Label("no connection", "✗", "bad")


Severity = Literal["error", "warning", "note"]
"""Of a problem of a plan. An error stops the run."""


def severity_label(severity: Severity) -> Label:
    """The label of a problem."""
    match severity:
        case "error":
            return Label("error", "✗", "bad")
        case "warning":
            return Label("warning", "!", "warning")
        case "note":
            return Label("note", "·", "quiet")


CheckStatus = Literal["ok", "warning", "failed"]
"""Of a preflight check. Only a failed one stops the run."""


def check_label(status: CheckStatus) -> Label:
    """The label of a preflight check."""
    match status:
        case "ok":
            return Label("ok", "✓", "good")
        case "warning":
            return Label("warning", "!", "warning")
        case "failed":
            return Label("failed", "✗", "bad")


InstallStatus = Literal["missing", "running", "done", "failed"]
"""Of an install step."""


def install_label(status: InstallStatus) -> Label:
    """The label of an install step."""
    match status:
        case "missing":
            return Label("missing", "○", "quiet")
        case "running":
            return Label("running", "●", "active")
        case "done":
            return Label("done", "✓", "good")
        case "failed":
            return Label("failed", "✗", "bad")


StepMark = Literal["done", "open", "flagged"]
"""Of a step on the way: of the wizard's steps, or of a run's stages. `flagged`: its answer became impossible."""


def mark_label(mark: StepMark) -> Label:
    """The label of a step on the way."""
    match mark:
        case "done":
            return Label("done", "✓", "good")
        case "open":
            return Label("open", "○", "quiet")
        case "flagged":
            return Label("flagged", "✗", "bad")


ValidityOutcome = Literal["ok", "failed", "unknown"]
"""Outcome of one validity check (CONTRACT: `validity`)."""


def validity_label(outcome: ValidityOutcome) -> Label:
    """The label of a validity check."""
    match outcome:
        case "ok":
            return Label("ok", "✓", "good")
        case "failed":
            return Label("failed", "✗", "bad")
        case "unknown":
            return Label("unknown", "?", "warning")


FindingOutcome = Literal["agrees", "differs", "unknown"]
"""Of a check of an archive. `unknown`: the archive does not hold what the check needs."""


def finding_label(outcome: FindingOutcome) -> Label:
    """The label of a check of an archive."""
    match outcome:
        case "agrees":
            return Label("agrees", "✓", "good")
        case "differs":
            return Label("differs", "✗", "bad")
        case "unknown":
            return Label("unknown", "?", "warning")


ContrastOutcome = Literal["slower", "faster", "within the noise", "not known"]
"""Of a difference between two groups of runs."""


def contrast_label(outcome: ContrastOutcome) -> Label:
    """The label of a difference."""
    match outcome:
        case "slower":
            return Label("slower", "▲", "warning")
        case "faster":
            return Label("faster", "▼", "good")
        case "within the noise":
            return Label("within the noise", "≈", "quiet")
        case "not known":
            return Label("unknown", "?", "quiet")


ComparisonRemark = Literal["refused", "doubtful", "excluded"]
"""Kind of a remark on a comparison. `refused`: nothing is compared. `doubtful`: the runs are not alike. `excluded`:
a run is not compared."""


def remark_label(remark: ComparisonRemark) -> Label:
    """The label of a remark on a comparison."""
    match remark:
        case "refused":
            return Label("not comparable", "✗", "bad")
        case "doubtful":
            return Label("not alike", "!", "warning")
        case "excluded":
            return Label("excluded", "·", "quiet")


NodeState = Literal["suspected", "unremarkable", "not enough runs", "not told apart", "changed over time"]
"""Of a node, by the runs with it and without it."""


def node_label(state: NodeState) -> Label:
    """The label of a node."""
    match state:
        case "suspected":
            return Label("suspected", "✗", "bad")
        case "unremarkable":
            return Label("unremarkable", "·", "plain")
        case "not enough runs":
            return Label("too few runs", "?", "quiet")
        case "not told apart" | "changed over time":
            return Label(state, "!", "warning")


MemoryVerdict = Literal["fits", "tight", "needs recompute or sharding"]
"""Of the memory that a plan needs on each GPU."""


def memory_label(verdict: MemoryVerdict) -> Label:
    """The label of a plan's memory."""
    match verdict:
        case "fits":
            return Label("fits", "✓", "plain")
        case "tight" | "needs recompute or sharding":
            return Label(verdict, "!", "warning")


Method = Literal["published", "other_release", "interpolated", "extrapolated", "modelled"]
"""Origin of an expected step time, most trusted first."""


def method_word(method: Method) -> str:
    """The origin of an expected step time in one or two words."""
    return method.replace("_", " ")


def method_phrase(method: Method) -> str:
    """The origin as a sentence has it: `published for another release`."""
    return "published for another release" if method == "other_release" else method_word(method)
