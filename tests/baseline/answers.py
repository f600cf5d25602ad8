"""Runs the verbs of the baseline on a copy of its home directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.demo.cluster import DemoCluster
from tests.kit import verbs

HERE = Path(__file__).parent
HOME = HERE / "home"
ARCHIVE = HERE / "evidence.tar.zst"
PLAIN, PROFILED, OTHER_LAYOUT = "261127051729rz5k", "261127051735vkt6", "261127051740rr3t"
CANCELLED, SLOW, SOCKET, DIED = "261127051745m32s", "261127051751euzr", "261127051756hmab", "2611270518023378"
UPSTREAM, LLMB, RUNAI = "261127051422ghmz", "llmb7b4ac", "261127051919j2kr"
SUITES = SUITE, UNFINISHED = "s261127051807w6vy", "s2611270518123nfv"
ENDED = (PLAIN, PROFILED, OTHER_LAYOUT, SLOW, SOCKET, UPSTREAM, LLMB, RUNAI)
_NEMOTRON = ("-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "fp8")
_GROK = ("-w", "grok1", "-s", "314b", "--gpu", "h100", "-d", "bf16")

_SPEED = 600.0
"""Of the embedded cluster's clock."""
_WRITTEN_AT = 1_795_757_000
"""Unix time, after the last run had ended."""
PLACE = "@HOME@"
"""Stands for the copied home directory in the answers."""

VERBS: dict[str, tuple[str, ...]] = {
    "list": ("list", "--json"),
    "plan": ("plan", *_NEMOTRON, "--scale", "64", "--json"),
    "plan-other-scale": ("plan", *_NEMOTRON, "--scale", "1024", "--json"),
    "plan-other-layout": ("plan", *_NEMOTRON, "--scale", "64", "--tp", "4", "--gbs", "512", "--json"),
    "plan-strong": (
        "plan", "-w", "nemotron4-340b", "-s", "340b", "--gpu", "gb200", "-d", "fp8", "--scale", "512",
        "--strong-scaling", "--json",
    ),
    "plan-proxy": ("plan", *_GROK, "--scale", "16", "--json"),
    "plan-impossible": ("plan", *_NEMOTRON, "--scale", "65", "--json"),
    "plan-options": ("plan", *_NEMOTRON, "--scale", "64", "--profile", "--steps", "40", "--json"),
    "plan-unknown": ("plan", "-w", "nemotron5", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64", "--json"),
    "plan-layouts": ("plan", *_NEMOTRON, "--scale", "64", "--layouts", "5", "--json"),
    "plan-from": ("plan", "--from", f"{PLACE}/plans.jsonl"),
    "accuracy": ("accuracy", "--json"),
    "clusters": ("clusters", "--json"),
    "config-path": ("config", "path", "--json"),
    "config-show": ("config", "show", "--json"),
    "config-validate": ("config", "validate", "--json"),
    "jobs": ("jobs", "--json"),
    **{f"watch-{run}": ("watch", run, "--once", "--json") for run in (*ENDED, CANCELLED, DIED)},
    "results": ("results", *ENDED, "--json"),
    "results-csv": ("results", *ENDED, "--format", "csv"),
    "results-bad-ends": ("results", CANCELLED, DIED, "--json"),
    "results-strict": ("results", PLAIN, SOCKET, "--strict", "--json"),
    "results-other-rule": ("results", PLAIN, LLMB, "--rule", "llmb-run", "--json"),
    "results-log": ("results", f"{PLACE}/foreign.log", *_NEMOTRON, "--scale", "64", "--json"),
    "results-log-csv": ("results", f"{PLACE}/foreign.log", *_NEMOTRON, "--scale", "64", "--format", "csv"),
    "results-suite": ("results", SUITE, "--json"),
    "results-suite-csv": ("results", SUITE, "--format", "csv"),
    "results-unknown": ("results", "norun", "--json"),
    "compare": ("compare", *ENDED, "--json"),
    "compare-csv": ("compare", *ENDED, "--format", "csv"),
    "compare-diff": ("compare", PLAIN, OTHER_LAYOUT, "--diff", "--json"),
    "compare-nodes": ("compare", "--nodes", "--cluster", "demo", "--json"),
    "compare-against": ("compare", PLAIN, SLOW, "--against", SUITE, "--json"),
    "compare-for-repeats": ("compare", *ENDED, "--for", "repeats", "--json"),
    "suite-list": ("suite", "list", "--json"),
    "suite-plan": ("suite", "plan", f"{PLACE}/weekly.toml", "--offline", "--json"),
    "suite-plan-scaling": ("suite", "plan", "scaling", *_NEMOTRON, "--cluster", "demo", "--offline", "--json"),
    "suite-watch": ("suite", "watch", SUITE, "--once", "--offline", "--json"),
    "report": ("report", PLAIN, OTHER_LAYOUT, LLMB, "--json"),
    "report-suite": ("report", SUITE, "--json"),
    "export": ("export", PLAIN, UPSTREAM, RUNAI, SUITE, "-o", f"{PLACE}/evidence.tar.zst", "--json"),
    "verify": ("verify", str(ARCHIVE), "--json"),
    "logs": ("logs", PLAIN, "--json"),
    "note": ("note", PLAIN, "--json"),
    "cancel": ("cancel", PLAIN, "--yes", "--json"),
    "fetch": ("fetch", PLAIN, "--json"),
    "prune": ("jobs", "--prune", "--json"),
}  # fmt: skip


DEMO = "demo"
LIVE: dict[str, tuple[str, ...]] = {
    "doctor": ("doctor", DEMO, *_NEMOTRON, "--scale", "64", "--json"),
    "install": ("install", DEMO, *_NEMOTRON, "--scale", "64", "--json"),
    "secrets": ("secrets", DEMO, "--json"),
    "llmb": ("llmb", DEMO, "--json"),
    "submit-dry-run": ("submit", *_NEMOTRON, "--scale", "64", "--cluster", DEMO, "--dry-run", "--json"),
    "submit": ("submit", *_NEMOTRON, "--scale", "64", "--cluster", DEMO, "--yes", "--json"),
    "jobs-live": ("jobs", "--json"),
    "disk": ("disk", DEMO, "--json"),
    "suite-submit": ("suite", "submit", f"{PLACE}/unfinished.toml", "--yes", "--json"),
}
"""Verbs that need a cluster, in the order in which they are run on the embedded one."""


def copy_home(home: Path) -> None:
    """A copy whose files were all written at the same time, whenever this repository was checked out."""
    shutil.copytree(HOME, home)
    for path in home.rglob("*"):
        os.utime(path, (_WRITTEN_AT, _WRITTEN_AT))


def answer(home: Path, words: tuple[str, ...]) -> str:
    """Exit code and stdout of a verb on a fresh copy of the home directory, which is made at `home`."""
    copy_home(home)
    return _said(home, words)


def live_answers(home: Path) -> Iterator[tuple[str, str]]:
    """(name, answer) of the verbs that need a cluster: the state directory is the old one, the cluster a new one."""
    copy_home(home)
    with DemoCluster(home / "cluster", speed=_SPEED) as cluster:
        save_profile(home / "config" / "clusters", cluster.profile)
        for name, words in LIVE.items():
            yield name, _said(home, words)


def _said(home: Path, words: tuple[str, ...]) -> str:
    done = verbs.run(tuple(word.replace(PLACE, str(home)) for word in words), verbs.environment(home))
    return f"{done.returncode}\n{done.stdout.replace(str(home), PLACE).replace(str(HERE), '@BASELINE@')}"


_TEXTS = (
    "reasons against rule words note anchor label lines reason fix blocks made what why error left_out unknown kept"
)
PROSE = frozenset([*_TEXTS.split(), "caveat", "unpaired"])
"""Keys of texts that may change: `blocks`, `made` of reports; `what`, `why`, `error` of errors. Their form is kept."""


def difference(before: Any, now: Any, at: str = "$", *, values: bool = True) -> str:
    """First place where two JSON documents differ: keys, their order, types, numbers and words. Empty if they do not.

    `values`: compare numbers, words and nulls; otherwise only the form.
    """
    found: Iterable[str] = ()
    if not values and None in (before, now):
        return ""
    if type(before) is not type(now):
        return f"{at}: {before!r} was {type(before).__name__}, {now!r} is {type(now).__name__}"
    if isinstance(before, dict):
        if list(before) != list(now):
            return f"{at}: keys {list(before)} are {list(now)}"
        # `found` of a validity check is data, and so is a `title`, except that of a report's section.
        prose = PROSE | ({"found"} if "what" in before else {"title"} if "blocks" in before else set())
        prose |= {"name"} if "configuration" in before else set()  # a group's label
        found = (difference(before[key], now[key], f"{at}.{key}", values=values and key not in prose) for key in before)
    elif isinstance(before, list) and not (values and len(before) != len(now)):
        found = (
            difference(*pair, f"{at}[{index}]", values=values)
            for index, pair in enumerate(zip(before, now, strict=False))
        )
    elif values and before != now:
        found = [f"{at}: {before!r} is {now!r}"]
    return next(filter(None, found), "")
