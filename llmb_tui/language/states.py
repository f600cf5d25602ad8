"""States as people read them: each set of states once, and the word, the glyph and the tone of each state.

The members of a set are data: files, JSON, CSV and flags contain them. Screens, tables and reports show their labels.
Two states of a set that differ in tone also differ in glyph, so that no colour is needed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Tone = Literal["plain", "quiet", "active", "good", "warning", "bad"]
"""Weight of a state, for which each output has a colour."""


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
"""Submission state of a run. `unknown`: the answer was lost. `withdrawn`: the run has no job and will get none."""
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
"""Stage of a submitted run. `submitted`: its cluster has not been asked about it yet."""
RunStateName = Submission | Stage
"""Submission state of a run until it has a job, then its stage."""


def state_label(state: RunStateName) -> Label:  # noqa: PLR0911 - one return for each label
    """Label of a run's submission state or stage."""
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


FAILING = Label("failing", "✗", "bad")
"""Label of an active run whose log has an error that ends it. Its state stays that of its stage until the job ends."""

RowStanding = Literal["not sent", "unknown", "waiting", "running", "done", "refused", "failed", "cancelled"]
"""State of a suite's row. `unknown`: it may have a job, or the files of its run cannot be read. `waiting`: in the
queue. `done`: it ran to its end. `refused`: it has no job, and is submitted again with the suite. `failed`: it ended
with an error. `cancelled`: by a user, or withdrawn before it was submitted."""


def row_label(standing: RowStanding) -> Label:
    """Label of a suite's row, in the words of its run."""
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
    match result:
        case "PASS":
            return Label(result, "✓", "good")
        case "WARN":
            return Label(result, "!", "warning")
        case "FAIL":
            return Label(result, "✗", "bad")


RunLink = Literal["live", "connecting", "lost", "closed"]
"""State of the connection over which the log and the job of a watched run are read."""
LinkState = RunLink | Literal["needs-login"]
"""State of the connection to a cluster. `needs-login`: it broke, and a new login needs an answer from the user."""


def link_label(state: LinkState) -> Label:
    """Label of a connection that has been established before."""
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
"""State of the wizard's cluster. `none`: no cluster is selected. `unknown`: not connected yet."""


def probe_label(state: ProbeState) -> Label:
    """Label of the wizard's cluster."""
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
"""Severity of a problem of a plan. An error stops the run."""


def severity_label(severity: Severity) -> Label:
    """Label of a problem."""
    match severity:
        case "error":
            return Label("error", "✗", "bad")
        case "warning":
            return Label("warning", "!", "warning")
        case "note":
            return Label("note", "·", "quiet")


CheckStatus = Literal["ok", "warning", "failed"]
"""State of a preflight check. Only a failed check stops the run."""


def check_label(status: CheckStatus) -> Label:
    """Label of a preflight check."""
    match status:
        case "ok":
            return Label("ok", "✓", "good")
        case "warning":
            return Label("warning", "!", "warning")
        case "failed":
            return Label("failed", "✗", "bad")


InstallStatus = Literal["missing", "running", "done", "failed"]
"""State of an install step."""


def install_label(status: InstallStatus) -> Label:
    """Label of an install step."""
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
"""State of a step of the wizard or of a stage of a run. `flagged`: its answer became impossible."""


def mark_label(mark: StepMark) -> Label:
    """Label of a step or a stage."""
    match mark:
        case "done":
            return Label("done", "✓", "good")
        case "open":
            return Label("open", "○", "quiet")
        case "flagged":
            return Label("flagged", "✗", "bad")


ValidityOutcome = Literal["ok", "failed", "unknown"]
"""Outcome of one validity check."""


def validity_label(outcome: ValidityOutcome) -> Label:
    """Label of a validity check."""
    match outcome:
        case "ok":
            return Label("ok", "✓", "good")
        case "failed":
            return Label("failed", "✗", "bad")
        case "unknown":
            return Label("unknown", "?", "warning")


FindingOutcome = Literal["agrees", "differs", "unknown"]
"""Outcome of a check of an archive. `unknown`: the archive does not contain the data that the check needs."""


def finding_label(outcome: FindingOutcome) -> Label:
    """Label of a check of an archive."""
    match outcome:
        case "agrees":
            return Label("agrees", "✓", "good")
        case "differs":
            return Label("differs", "✗", "bad")
        case "unknown":
            return Label("unknown", "?", "warning")


ContrastOutcome = Literal["slower", "faster", "within the noise", "not known"]
"""Outcome of a comparison of two groups of runs."""


def contrast_label(outcome: ContrastOutcome) -> Label:
    """Label of a difference."""
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
"""Kind of a remark on a comparison. `refused`: nothing is compared. `doubtful`: the runs are not alike. `excluded`: a
run is left out of the comparison."""


def remark_label(remark: ComparisonRemark) -> Label:
    """Label of a remark on a comparison."""
    match remark:
        case "refused":
            return Label("not comparable", "✗", "bad")
        case "doubtful":
            return Label("not alike", "!", "warning")
        case "excluded":
            return Label("excluded", "·", "quiet")


NodeState = Literal["suspected", "unremarkable", "not enough runs", "not told apart", "changed over time"]
"""State of a node, from the runs with it and without it."""


def node_label(state: NodeState) -> Label:
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
"""Result of comparing the memory that a plan needs on each GPU with the GPU's memory."""


def memory_label(verdict: MemoryVerdict) -> Label:
    """Label of a plan's memory."""
    match verdict:
        case "fits":
            return Label("fits", "✓", "plain")
        case "tight" | "needs recompute or sharding":
            return Label(verdict, "!", "warning")


Method = Literal["published", "other_release", "interpolated", "extrapolated", "modelled"]
"""Source of an expected step time, most trusted first."""


def method_word(method: Method) -> str:
    """Source of an expected step time in one or two words."""
    return method.replace("_", " ")


NO_ESTIMATE = "no estimate"
"""Text in place of the source of an expected step time if there is no estimate."""


def method_phrase(method: Method) -> str:
    """Source of an expected step time within a sentence: `published for another release`."""
    return "published for another release" if method == "other_release" else method_word(method)
