"""Which keys are on a cluster, and what they open from there. What lies on the cluster is never read back here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session, login_node
from llmb_tui.errors import Trouble
from llmb_tui.language.states import CheckStatus
from llmb_tui.language.text import clean, clean_line
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.fetch import Credentials, fetch
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.network import HUB, servers_in_use
from llmb_tui.preflight.network import REGISTRY as REGISTRY_CHECK
from llmb_tui.preflight.registry import RegistryAnswer, ask_registry
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.preflight.secret import (
    ENROOT_CREDENTIALS,
    HUB_TOKEN,
    SECRETS,
    TITLES,
    SecretId,
    SecretNeed,
    SecretValue,
)
from llmb_tui.store import secret_store

TestResult = Literal["valid", "refused", "no access yet", "not tested"]

_SERVERS: dict[SecretId, str] = {"ngc": REGISTRY_CHECK, "hugging-face": HUB}
FILES: dict[SecretId, str] = {"ngc": ENROOT_CREDENTIALS, "hugging-face": HUB_TOKEN}
"""File of each key, below the home directory on the cluster."""


@dataclass(frozen=True, slots=True)
class SecretState:
    """Where a secret is. Nothing is said about its value."""

    id: SecretId
    title: str
    on_cluster: bool
    """In the file of ours."""
    own: bool
    """In a file that the operator, or another program, made there."""
    in_keyring: bool = False
    """Of this computer."""


@dataclass(frozen=True, slots=True)
class SecretTest:
    """What the servers say to a secret."""

    id: SecretId
    result: TestResult
    words: str
    fix: str = ""


def secret_states(session: Session, *, keyring: bool = False) -> tuple[SecretState, ...]:
    """Which secrets are on the cluster and, where that is asked for, in this computer's keyring.

    Raises what `Session.run` raises, and Trouble when nobody can say.
    """
    files = [FILES[secret_id] for secret_id in SECRETS]
    result = session.run_script(remote_text("secret_states.sh"), files, only_looks=True)
    lines = [line.split() for line in result.stdout.splitlines()[-len(SECRETS) :]]  # a login shell may print before
    if [len(words) for words in lines] != [2] * len(SECRETS):
        raise Trouble("It could not be found out which keys are on the cluster.", clean(result.stderr).strip())
    return tuple(
        SecretState(secret_id, TITLES[secret_id], ours == "ours", own == "own", keyring and _is_kept(secret_id))
        for secret_id, (ours, own) in zip(SECRETS, lines, strict=True)
    )


def _is_kept(secret_id: SecretId) -> bool:
    try:
        return secret_store.read(secret_id) is not None
    except secret_store.NotKept:
        return False


def try_secret(session: Session, need: SecretNeed, secret: SecretValue | None, sources: Sources) -> SecretTest:
    """Ask, from the cluster, whether a secret opens what a plan needs: the given one, else the one that lies there.

    For the registry, without either, whether it hands the image out to anybody. Raises what `Session.run` raises.
    """
    if need.id == "ngc":
        answer = ask_registry(session, need.opens[0], secret, sources.registry)
        return _of_registry(answer, need, keyless=secret is None and not _is_there(session, "ngc"))
    return _try_hub_token(session, need, secret, sources.hub)


def _is_there(session: Session, secret_id: SecretId) -> bool:
    return next(state.on_cluster for state in secret_states(session) if state.id == secret_id)


def _of_registry(answer: RegistryAnswer, need: SecretNeed, *, keyless: bool) -> SecretTest:
    image = need.opens[0]
    if answer.granted == "granted":
        words = f"The registry hands {image} out" + (" without a key." if keyless else " with this key.")
        return SecretTest("ngc", "valid", words)
    if answer.granted == "no such image":
        return SecretTest("ngc", "not tested", f"The registry has no image {image} for this login ({answer.words}).")
    if answer.granted == "unknown":
        return _not_tested(need, answer.words)
    if keyless:
        words = f"The registry does not hand {image} out without a key ({answer.words})."
        return SecretTest("ngc", "refused", words, f"Make a key at {need.where}, and give it.")
    if answer.granted == "login refused":
        fix = f"Copy it again, as a whole, or make a new one at {need.where}."
        return SecretTest("ngc", "refused", f"The registry does not take this key ({answer.words}).", fix)
    fix = "Choose the organisation that has access when you make the key, or accept the image's terms on its page."
    return SecretTest("ngc", "no access yet", f"The key is valid, but not for {image} ({answer.words}).", fix)


def _try_hub_token(session: Session, need: SecretNeed, secret: SecretValue | None, hub: str) -> SecretTest:
    if secret is None and not _is_there(session, "hugging-face"):
        return _not_tested(need, "none is on the cluster")
    credentials = Credentials(token=secret.value) if secret else Credentials(bearer=HUB_TOKEN)
    who = fetch(session, f"{hub}/api/whoami-v2", credentials=credentials)
    if who.status in (401, 403):
        fix = f"Copy it again, as a whole, or make a new one at {need.where}."
        return SecretTest(need.id, "refused", f"The model hub does not take this token (HTTP {who.status}).", fix)
    if who.status != 200:
        return _not_tested(need, who.error or f"HTTP {who.status}")
    for repository in need.opens:
        url = f"{hub}/{repository}/resolve/main/config.json"
        answer = fetch(session, url, credentials=credentials, head=True)
        if answer.status in (401, 403, 404):
            fix = f"Ask for access at {hub}/{repository}. {need.how_long}".rstrip()
            words = f"The token is valid, but {repository} is not open to it yet (HTTP {answer.status})."
            return SecretTest(need.id, "no access yet", words, fix)
        if not 200 <= answer.status < 400:
            return _not_tested(need, answer.error or f"HTTP {answer.status}")
    opened = f", and opens {' and '.join(need.opens)}" if need.opens else ""
    return SecretTest(need.id, "valid", f"The token is valid{opened}.")


def _not_tested(need: SecretNeed, why: str) -> SecretTest:
    return SecretTest(need.id, "not tested", f"The {need.title} could not be tested from the cluster: {why}.")


def access_group(needs: Sequence[SecretNeed], sources: Sources) -> CheckGroup:
    """For the preflight: what the keys open of the servers in use. Asks nothing where none was reached."""

    def group(cluster: Cluster, report: Preflight) -> tuple[Check, ...]:
        servers = servers_in_use(report)
        in_use = [need for need in needs if _SERVERS[need.id] in servers]
        return secret_checks(login_node(cluster), in_use, sources) if in_use else ()

    return group


def secret_checks(session: Session, needs: Sequence[SecretNeed], sources: Sources) -> tuple[Check, ...]:
    """What each needed secret opens. One that is not required is only looked at where it is given.

    Raises what `Session.run` raises.
    """
    present = {state.id for state in secret_states(session) if state.on_cluster}
    tests = [
        (need, try_secret(session, need, None, sources))
        for need in needs
        if need.id == "ngc" or need.required or need.id in present
    ]
    return tuple(_check(need, test) for need, test in tests)


def _check(need: SecretNeed, test: SecretTest) -> Check:
    status: CheckStatus = "ok" if test.result == "valid" else "warning"
    if need.required and test.result in ("refused", "no access yet"):
        status = "failed"
    needed = f"access to {' and '.join(need.opens)}" if need.opens else "a valid token"
    return Check(f"secret-{need.id}", need.title, status, clean_line(test.words), needed, clean_line(test.fix))
