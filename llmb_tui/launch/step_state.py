"""`StepState`: one install step as it was found on its cluster, read from what `remote/look.sh` prints. Pure."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.slurm.pending import pending_reason
from llmb_tui.errors import Trouble
from llmb_tui.launch.install_failure import InstallFailure, explain
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.secret import SecretId
from llmb_tui.text import clean_line

StepStatus = Literal["missing", "running", "done", "failed"]

_HEAD = re.compile(r"= (missing|lost|gone|waiting|running|done|failed) (\d+) (\d+) (\d+) (\d+) (\S+)")
# git's own words for how far it is.
_GIT = re.compile(r"(?:Receiving objects|Resolving deltas|Updating files): +(\d+)% \((\d+)/(\d+)\)")
_PACE_WINDOW_S = 60.0
_PACE_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class StepState:
    """One step as it was found on the cluster. Texts are clean."""

    id: str
    title: str
    status: StepStatus
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
class Found:
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


def read_found(output: str, count: int) -> list[Found]:
    """What look.sh printed about `count` steps. Raises Trouble when it is not that."""
    found: list[Found] = []
    blocks = re.split(r"(?m)^(?== )", output)[1:]
    for block in blocks:
        head, *rest = block.rstrip("\n").split("\n")
        match = _HEAD.fullmatch(head)
        if match is None:
            raise _unreadable(head)
        state, written, cached, layers, of_layers, job = match.groups()
        queued = next((line[1:] for line in rest if line.startswith("?")), "")
        log = tuple(line[1:] for line in rest if line.startswith("|"))
        numbers = (int(written), int(cached), int(layers), int(of_layers))
        found.append(Found(state, *numbers, "" if job == "-" else job, queued, log))
    if len(found) != count:
        raise _unreadable(output[:200])
    return found


def _unreadable(said: str) -> Trouble:
    return Trouble("The install steps could not be looked at.", f"The answer was {clean_line(said)!r}.")


class Pace:
    """How fast the bytes of one step come, over the last minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def seconds_left(self, now: float, so_far: int, total: int | None) -> float | None:
        """Note the bytes at the monotonic time `now`; None until a rate can be seen."""
        if self._seen and so_far < self._seen[-1][1]:
            self._seen.clear()  # the next part of the work
        self._seen.append((now, so_far))
        while now - self._seen[0][0] > _PACE_WINDOW_S:
            self._seen.popleft()
        since, before = self._seen[0]
        if total is None or now - since < _PACE_AFTER_S or so_far <= before:
            return None
        return max(0.0, total - so_far) * (now - since) / (so_far - before)


def state_of(step: InstallStep, found: Found, total: int | None, pace: Pace, now: float) -> StepState:
    """What is shown of a step; `total` is the size of its download in bytes, if the registry said so."""
    if found.state == "done":
        return StepState(step.id, step.title, "done", size=_gb(found.written) if step.size else "")
    if found.state == "missing":
        return StepState(step.id, step.title, "missing", size=_planned(step, total))
    if found.state == "lost":
        lost = "An earlier attempt was ended from outside; what it fetched is kept."
        return StepState(step.id, step.title, "missing", lost, _planned(step, total))
    if found.state in ("failed", "gone"):
        failure = explain(found.log)
        if found.state == "gone" and not failure.reason:
            failure = _job_is_gone(found, failure)
        return StepState(
            step.id, step.title, "failed", failure.line, _planned(step, total),
            failure.reason, failure.fix, failure.key_would_help,
        )  # fmt: skip
    if found.state == "waiting":
        return StepState(step.id, step.title, "running", _waits(found), _planned(step, total))
    return _running(step, found, total, pace, now)


def _running(step: InstallStep, found: Found, total: int | None, pace: Pace, now: float) -> StepState:
    detail = clean_line(found.log[-1]).strip() if found.log else ""
    if found.job:
        detail = f"Job {found.job}: {detail}"
    if not step.size:
        left, size = None, ""
        if part := _GIT.search(detail):
            left = pace.seconds_left(now, int(part[2]), int(part[3]))
            size = f"{part[1]} %" + ("" if left is None else f", {_duration(left)} left")
        return StepState(step.id, step.title, "running", detail, size, seconds_left=left)
    so_far, of = (found.written, None) if found.written else (found.cached, total)
    left = pace.seconds_left(now, so_far, of)
    size = _progress(found, total) + ("" if left is None else f", {_duration(left)} left")
    return StepState(step.id, step.title, "running", detail, size, bytes_so_far=so_far, bytes_of=of, seconds_left=left)


def _progress(found: Found, total: int | None) -> str:
    if found.written:
        return f"{_gb(found.written)} written"
    of_total = "" if total is None else f" of {_gb(total)}"
    layers = (
        f", {min(max(0, found.layers - 1), found.of_layers)} of {found.of_layers} layers" if found.of_layers else ""
    )
    return f"{_gb(found.cached)}{of_total} downloaded{layers}"


def _waits(found: Found) -> str:
    reason, _, start = found.queued.partition("|")
    words = f"Job {found.job} waits in the queue"
    if reason and reason != "None":
        words += f": {pending_reason(reason)}"
    if re.match(r"\d{4}-\d\d-\d\d", start):
        words += f" Slurm expects it to start at {clean_line(start)}."
    return words


def _job_is_gone(found: Found, failure: InstallFailure) -> InstallFailure:
    return InstallFailure(
        failure.line,
        f"Job {found.job}, which was to do it, has ended without a word.",
        "Look at it with `sacct`, and install again: it goes on where it stopped.",
    )


def _planned(step: InstallStep, total: int | None) -> str:
    return step.size if total is None else f"{_gb(total)} to download"


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes else "less than a minute"
