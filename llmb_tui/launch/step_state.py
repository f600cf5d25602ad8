"""`StepState`: one install step as it was found on its cluster, read from what `remote/look.sh` prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from llmb_tui.cluster.job_words import pending_reason
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.diagnosis.rules import rules
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import byte_size, duration
from llmb_tui.language.states import InstallStatus
from llmb_tui.language.text import clean_line, short_line
from llmb_tui.preflight.secret import SecretId
from llmb_tui.rates import Pace

_HEAD = re.compile(r"(?m)^= (missing|lost|gone|waiting|running|done|failed) (\d+) (\d+) (\d+) (\d+) (\S+)$")
# git's own words for how far it is.
_WORD = re.compile(r"[^\W\d_]{2}")
_LONGEST_REASON = 400
_GIT = re.compile(r"(?:Receiving objects|Resolving deltas|Updating files): +(\d+)% \((\d+)/(\d+)\)")


@dataclass(frozen=True, slots=True)
class StepState:
    """One step as it was found on the cluster. Texts are clean."""

    id: str
    title: str
    status: InstallStatus
    detail: str = ""
    """While it runs the last line of its log, or how its job waits; when it failed the line that says why."""
    size: str = ""
    """What it will take, how far it is and for how long still, or what it has taken; empty where it does not matter."""
    reason: str = ""
    """Why it failed, in plain words; empty where the line is not known."""
    fix: str = ""
    """What to do about it; empty unless it failed."""
    key_would_help: SecretId | None = None
    """The key with which it may work: the registry refused the image, or the model hub's token is missing."""
    bytes_so_far: int | None = None
    """Of what it downloads or writes, while it runs and that can be seen."""
    bytes_of: int | None = None
    """How many there will be; None where nothing says so."""
    seconds_left: float | None = None
    """Of the download, or of what git does now; None where no rate was seen."""


@dataclass(frozen=True, slots=True)
class StepProbe:
    """What `remote/look.sh` said about a step."""

    state: str
    """One of the words that look.sh names."""
    written: int
    """Bytes of the files that grow, or of the result."""
    cached: int
    """Bytes of the layers in enroot's cache."""
    layers: int
    """Whole files in that cache, one of which is no layer."""
    of_layers: int
    """How many layers enroot said that it downloads; 0 where it did not say."""
    job: str
    """Slurm's job id; empty for none."""
    queued: str
    """`REASON|START` of a job that waits."""
    log: tuple[str, ...]
    """The end of the log, not clean."""


def read_probes(output: str, count: int) -> list[StepProbe]:
    """What look.sh printed about `count` steps, behind any greeting. Raises Trouble when it is not that."""
    probes: list[StepProbe] = []
    _, *parts = _HEAD.split(output)
    size = _HEAD.groups + 1  # with what follows the head
    for at in range(0, len(parts), size):
        state, written, cached, layers, of_layers, job, following = parts[at : at + size]
        rest = following.split("\n")
        queued = next((line[1:] for line in rest if line.startswith("?")), "")
        log = tuple(line[1:] for line in rest if line.startswith("|"))
        numbers = (int(written), int(cached), int(layers), int(of_layers))
        probes.append(StepProbe(state, *numbers, "" if job == "-" else job, queued, log))
    if len(probes) != count:
        raise _unreadable(output[:200])
    return probes


def _unreadable(answer: str) -> Trouble:
    return Trouble("The install steps could not be looked at.", f"The answer was {clean_line(answer)!r}.")


def step_pace() -> Pace:
    """How fast the bytes of one step come, over the last minute."""
    return Pace(within_s=60.0, after_s=5.0)


def state_of(missing: StepState, probe: StepProbe, total: int | None, pace: Pace, now: float) -> StepState:
    """What is shown of a step, of which `missing` is the state before anything is done.

    `total`: the size of its download in bytes, if the registry reports it.
    """
    sized = bool(missing.size)
    if total is not None:
        missing = replace(missing, size=f"{byte_size(total)} to download")
    if probe.state == "done":
        return replace(missing, status="done", size=byte_size(probe.written) if sized else "")
    if probe.state == "lost":
        return replace(missing, detail="An earlier attempt was ended from outside; what it fetched is kept.")
    if probe.state in ("failed", "gone"):
        why = explain(probe.log)
        if probe.state == "gone" and not why.reason:
            reason = f"Job {probe.job}, which was to do it, has ended without a word."
            why = Diagnosis(why.line, reason, "Look at it with `sacct`, and install again: the step continues.")
        key = why.key_would_help
        line = short_line(why.line, _LONGEST_REASON)
        return replace(missing, status="failed", detail=line, reason=why.reason, fix=why.fix, key_would_help=key)
    if probe.state == "waiting":
        return replace(missing, status="running", detail=_waits(probe))
    return _running(missing, probe, total, pace, now, sized=sized) if probe.state == "running" else missing


def _running(  # noqa: PLR0913 - as `state_of`
    missing: StepState, probe: StepProbe, total: int | None, pace: Pace, now: float, *, sized: bool
) -> StepState:
    detail = short_line(_last_words(probe.log))
    if probe.job:
        detail = f"Job {probe.job}: {detail}"
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
    """The last line that says something; pieces of a spinner or of a bar do not."""
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
    words = f"Job {probe.job} waits in the queue"
    if reason and reason != "None":
        words += f": {pending_reason(reason)}"
    if re.match(r"\d{4}-\d\d-\d\d", start):
        words += f" Slurm expects it to start at {clean_line(start)}."
    return words


def explain(log: Iterable[str]) -> Diagnosis:
    """Why a step failed: the most telling line of its log; the last one, without a reason, where none is known."""
    lines = [line for raw in log if (line := clean_line(raw).strip())]
    matches = [match for line in lines if (match := rules("install").match(line))]
    if matches:
        return min(matches, key=lambda match: match.order).diagnosis()
    fix = "Read the step's log on the cluster. Install again: the step continues."
    return Diagnosis(_last_words(lines) or "".join(lines[-1:]), "", fix)
