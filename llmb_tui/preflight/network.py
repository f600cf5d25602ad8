"""Checks of the servers that the login node reaches: container registry, git host, model hub. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.preflight.check_group import ADMINISTRATORS, Answers, CommandChecks, failed, ok, warning
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.report import Check, Preflight

REGISTRY, GIT, HUB = "registry", "git", "hub"
"""Ids of the checks."""
_REACHED = "reached"
_PROXY = re.compile(r"proxy", re.IGNORECASE)
_NO_GIT = "no git"
_LOGIN = "terminal prompts disabled"
_LS_REMOTE = "git ls-remote"
_LISTED = re.compile(r"\b[0-9a-f]{40,64}\s+HEAD$")


def network_group(needs: Needs) -> CommandChecks:
    """Make the checks of the servers, which send all requests at the same time."""
    sources = needs.sources
    probes = (
        ["probe_as_enroot", REGISTRY, f"{sources.registry}/v2/"],
        ["probe", HUB, f"{sources.hub}/robots.txt"],
        # git makes the request: its settings may have a mirror or a proxy, which curl would not use.
        ["probe_git", GIT, needs.repository or sources.git],
    )
    places = (needs.brought_image, *needs.brought_sources, needs.brought_packages)
    commands = {
        "image": "limited 4 " + shell_join(["test", "-s", needs.image]) if needs.image else "false",
        "set_up": "limited 4 " + shell_join(["test", "-s", needs.set_up]) if needs.set_up else "false",
        "brought": "\n".join(f"if limited 4 test -s {path}; then echo {path}; fi" for path in map(shlex.quote, places)),
        "enroot": "limited 5 enroot version",
        "probe": "\n".join(
            [
                remote_text("enroot_environment.sh", "servers.sh"),
                *(f"{shell_join(words)} &" for words in probes),
                "wait",
            ]
        ),
    }
    return CommandChecks(commands, lambda answers: network_checks(answers, needs))


def network_checks(answers: Answers, needs: Needs) -> Iterator[Check]:
    """Make one check for each server. Only servers from which the plan's procedure fetches files may fail it."""
    sources = needs.sources
    has_image, set_up = answers["image"].exit_code == 0, answers["set_up"].exit_code == 0
    fetches = bool(needs.repository)
    in_job = answers["enroot"].exit_code != 0
    servers = {
        REGISTRY: ("Container registry", sources.registry, needs.known and not has_image, "the container image"),
        GIT: ("Git host", needs.repository or sources.git, fetches and not set_up, "the recipe's repository"),
        HUB: ("Model hub", sources.hub, needs.hub and (needs.hub_each_run or not set_up), "the tokenizer"),
    }
    copies = {REGISTRY: tuple(filter(None, [needs.brought_image])), GIT: needs.brought_sources, HUB: ()}
    brought = answers["brought"].text.splitlines()
    for name, (title, address, is_needed, what) in servers.items():
        missing = tuple(path for path in copies[name] if path not in brought)
        match = re.search(rf"(?m)^{name} (.*)$", answers["probe"].text)
        words = (_shortened(match[1].strip()) if match else "") or "no answer in time"
        through = re.search(rf"(?m)^{name}_proxy (\S+)$", answers["probe"].text)
        proxy = through[1] if through else ""
        is_there = {REGISTRY: has_image, GIT: fetches and set_up, HUB: needs.hub and set_up}[name]
        needed = f"{address}, for {what}" if is_needed else _not_needed(address, what if is_there else "", needs)
        if _is_reached(name, words):
            yield ok(
                name, title, f"{_REACHED} ({words})" + (f" through Enroot's proxy {proxy}" if proxy else ""), needed
            )
        elif not needs.known:
            yield warning(name, title, words, needed, f"If you need {what}, copy it to the cluster yourself.")
        elif not is_needed:
            yield ok(name, title, f"not needed, and not reached: {words}", needed)
        elif copies[name] and not missing:
            yield ok(name, title, f"not reached ({words}), but already copied", needed)
        elif name == REGISTRY and in_job:
            fix = "A job imports the image, and its node may reach the registry; if not, copy the image there yourself."
            yield warning(name, title, words, needed, fix)
        else:
            packages = needs.brought_packages if name == GIT else ""
            bring = (*missing, *([packages] if packages and packages not in brought else []))
            fix = _remedy(words, what, bring, proxy)
            yield replace(failed(name, title, words, needed, fix), bring=bring if missing else ())


def servers_in_use(report: Preflight) -> set[str]:
    """Ids of the reached servers from which the plan's procedure fetches files."""
    reached = [
        check for check in report.checks if check.id in (REGISTRY, GIT, HUB) and check.found.startswith(_REACHED)
    ]
    return {check.id for check in reached if ", for " in check.needed}


def _shortened(words: str) -> str:
    """First HTTP status, or the mark of a listed repository; else the message of the failed connection."""
    if _LISTED.search(words):
        return _LS_REMOTE
    status = re.search(r"HTTP (?!000)\d{3}", words)
    return status[0] if status else re.sub(r"^(?:curl: \(\d+\)|fatal:) | HTTP 000$", "", words)


def _is_reached(name: str, words: str) -> bool:
    """True if git listed the repository, or another server answered itself, also with 401 (no login)."""
    if name == GIT:
        return words == _LS_REMOTE
    status = re.search(r"HTTP (\d{3})", words)
    return status is not None and status[1] != "407" and not status[1].startswith("5")


def _not_needed(address: str, present: str, needs: Needs) -> str:
    if not needs.known:
        return address
    return f"nothing from {address}: {f'{present} exists' if present else 'this procedure fetches nothing there'}"


def _remedy(words: str, what: str, bring: tuple[str, ...], proxy: str) -> str:
    if proxy:
        return (
            f"Enroot's configuration names the proxy {proxy}. {ADMINISTRATORS} If they have another proxy, set "
            "https_proxy in ~/.bashrc, which takes precedence."
        )
    if "407" in words or _PROXY.search(words):
        return "The site's proxy does not work: set http_proxy and https_proxy in ~/.bashrc as the site describes."
    if words == _NO_GIT:
        return "The install needs git: add it to the PATH of non-interactive shells in ~/.bashrc, such as by a module."
    if _LOGIN in words:
        return "The server asked git for a login: check whether `git config --get-regexp '^url'` redirects it."
    target = f" to {' and '.join(bring)}" if bring else ""
    return f"Set https_proxy in ~/.bashrc if the site has a proxy, or copy {what}{target} yourself and install again."
