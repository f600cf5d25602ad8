"""`StepState`: state of an install step on its cluster, read from the output of `remote/look.sh`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_words import wait_reason
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.diagnosis.rules import log_rules
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import byte_size, duration
from llmb_tui.language.redact import server_words, without_secrets
from llmb_tui.language.states import InstallStatus
from llmb_tui.language.text import clean_line, short_line
from llmb_tui.preflight.secret import SecretId
from llmb_tui.rates import RateEstimator

_HEAD = re.compile(
    r"(?m)^= (missing|lost|gone|waiting|running|done|failed) (\d{1,18}) (\d{1,18}) (\d{1,9}) (\d{1,9}) (\S{1,40})$"
)
_WORD = re.compile(r"[^\W\d_]{2}")
_LONGEST_REASON = 400
_LONGEST_READ = 4000
# git's own progress messages.
_GIT = re.compile(r"(?:Receiving objects|Resolving deltas|Updating files): +(\d{1,3})% \((\d{1,18})/(\d{1,18})\)")


@dataclass(frozen=True, slots=True)
class StepState:
    """State of one step on the cluster. Texts are clean."""

    id: str
    title: str
    status: InstallStatus
    detail: str = ""
    """Last log line of a running step, or how its job waits; of a failed step, the line with the cause."""
    size: str = ""
    """Expected size, progress with the remaining time, or final size; empty if size does not matter."""
    reason: str = ""
    """Why it failed, in plain words; empty if the line is unknown."""
    fix: str = ""
    """Remedy; empty unless the step failed."""
    key_would_help: SecretId | None = None
    """API key with which it may succeed: the registry refused the image, or the model hub's token is missing."""
    bytes_so_far: int | None = None
    """Bytes downloaded or written so far; None if the step does not run or shows no size."""
    bytes_of: int | None = None
    """Total number of bytes; None if it is unknown."""
    seconds_left: float | None = None
    """Remaining time of the download or of git's current phase; None if no rate was measured."""


@dataclass(frozen=True, slots=True)
class StepProbe:
    """Output of `remote/look.sh` about a step."""

    state: str
    """One of the words that look.sh names."""
    written: int
    """Bytes of the growing files, or of the result."""
    cached: int
    """Bytes of the layers in enroot's cache."""
    layers: int
    """Number of complete files in that cache; one of them is not a layer."""
    of_layers: int
    """Number of layers that enroot reported to download; 0 if it reported none."""
    job: str
    """Slurm's job id; empty if there is none."""
    queued: str
    """`REASON|START` of a waiting job."""
    holder: str
    """User who runs the step, and the node, if the lock belongs to another user; clean, else empty."""
    log: tuple[str, ...]
    """Last lines of the log, not cleaned."""


def read_probes(output: str, count: int) -> list[StepProbe]:
    """Parse the output of look.sh about `count` steps, behind any greeting. Raises LlmbError for other text."""
    probes: list[StepProbe] = []
    _, *parts = _HEAD.split(output)
    size = _HEAD.groups + 1  # with the text behind the head
    for start in range(0, len(parts), size):
        state, written, cached, layers, of_layers, job, following = parts[start : start + size]
        rest = following.split("\n")
        queued = next((line[1:] for line in rest if line.startswith("?")), "")
        holder = next((_holder(line[1:]) for line in rest if line.startswith("@")), "")
        log = tuple(line[1:] for line in rest if line.startswith("|"))
        numbers = (int(written), int(cached), int(layers), int(of_layers))
        probes.append(StepProbe(state, *numbers, "" if job == "-" else job, queued, holder, log))
    if len(probes) != count:
        raise _unreadable(output[:200])
    return probes


def _holder(line: str) -> str:
    """The user of a lock, who is certain, with the node that the lock's file names if it names that user."""
    user, _, owner = clean_line(line).partition(" ")
    node = owner.removeprefix(f"{user}@").split(".")[:-2] if owner.startswith(f"{user}@") else []
    return f"{user} on {'.'.join(node)}" if node else user or "Another user"


def _unreadable(answer: str) -> LlmbError:
    return LlmbError(
        "The install steps could not be checked.", f"The answer was {clean_line(server_words(answer, 400))!r}."
    )


def step_rate() -> RateEstimator:
    """Rate of one step's bytes over the last minute."""
    return RateEstimator(within_s=60.0, after_s=5.0)


def state_of(missing: StepState, probe: StepProbe, total: int | None, pace: RateEstimator, now: float) -> StepState:
    """State of a step to show; `missing` is its state before it has started.

    `total`: the size of its download in bytes, if the registry reports it.
    """
    sized = bool(missing.size)
    if total is not None:
        missing = replace(missing, size=f"{byte_size(total)} to download")
    if probe.state == "done":
        return replace(missing, status="done", size=byte_size(probe.written) if sized else "")
    if probe.state == "lost":
        return replace(missing, detail="An earlier attempt was killed from outside; its downloads are kept.")
    if probe.state in ("failed", "gone"):
        why = explain(probe.log)
        if probe.state == "gone" and not why.reason:
            reason = f"Job {probe.job} of this step ended without a message."
            why = Diagnosis(why.line, reason, "Look at it with `sacct`, and install again: the step continues.")
        key = why.key_would_help
        line = short_line(why.line, _LONGEST_REASON)
        return replace(missing, status="failed", detail=line, reason=why.reason, fix=why.fix, key_would_help=key)
    if probe.state == "waiting":
        return replace(missing, status="running", detail=_waits(probe))
    return _running(missing, probe, total, pace, now, sized=sized) if probe.state == "running" else missing


def _running(  # noqa: PLR0913 - as `state_of`
    missing: StepState, probe: StepProbe, total: int | None, pace: RateEstimator, now: float, *, sized: bool
) -> StepState:
    detail = short_line(without_secrets(short_line(_last_words(probe.log), _LONGEST_READ)))
    if probe.job:
        detail = f"Job {probe.job}: {detail}"
    if probe.holder:
        detail = f"{probe.holder} runs this step: {detail}" if detail else f"{probe.holder} runs this step."
    if not sized:
        left, size = None, ""
        if part := _GIT.search(detail):
            pace.note(int(part[2]), now)
            left = pace.seconds_left(int(part[3]), now)
            size = f"{part[1]} %" + ("" if left is None else f", about {duration(left)} left")
        return replace(missing, status="running", detail=detail, size=size, seconds_left=left)
    so_far, of = (probe.written, None) if probe.written else (probe.cached, total)
    pace.note(so_far, now)
    left = pace.seconds_left(of, now)
    size = _progress(probe, total) + ("" if left is None else f", about {duration(left)} left")
    return replace(
        missing, status="running", detail=detail, size=size, bytes_so_far=so_far, bytes_of=of, seconds_left=left
    )


def _last_words(log: Iterable[str]) -> str:
    """Last line with words; fragments of a spinner or progress bar do not count."""
    return next((line for line in reversed(tuple(log)) if _WORD.search(short_line(line))), "")


def _progress(probe: StepProbe, total: int | None) -> str:
    if probe.written:
        return f"{byte_size(probe.written)} written"
    of_total = "" if total is None else f" of {byte_size(total)}"
    layers = (
        f", {min(max(0, probe.layers - 1), probe.of_layers)} of {probe.of_layers} layers" if probe.of_layers else ""
    )
    return f"{byte_size(probe.cached)}{of_total} downloaded{layers}"


def _waits(probe: StepProbe) -> str:
    reason, _, start = probe.queued.partition("|")
    words = f"Job {probe.job} is waiting in the queue"
    if reason and reason != "None":
        words += f": {wait_reason(Job(probe.job, '', 'PENDING', reason))}"
    if re.match(r"\d{4}-\d\d-\d\d", start):
        words += f" Slurm expects it to start at {clean_line(start)}."
    return words


def explain(log: Iterable[str]) -> Diagnosis:
    """Why a step failed: the most specific known line of its log, or the last line without a reason."""
    lines = [line for raw in log if (line := clean_line(server_words(raw)))]
    matches = [match for line in lines if (match := log_rules("install").match(line))]
    if matches:
        return min(matches, key=lambda match: match.order).diagnosis()
    fix = "Read the step's log on the cluster. Install again: the step continues."
    return Diagnosis(_last_words(lines) or "".join(lines[-1:]), "", fix)
