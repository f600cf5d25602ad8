"""API keys on a cluster, and tests of their access. A stored key is never read back from the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session, login_node
from llmb_tui.errors import LlmbError
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
"""File of each API key, relative to the home directory on the cluster."""


@dataclass(frozen=True, slots=True)
class SecretState:
    """Places where a secret is stored, without its value."""

    id: SecretId
    title: str
    on_cluster: bool
    """Whether it is in this program's file."""
    own: bool
    """Whether it is in a file that the user or another program made there."""
    in_keyring: bool = False
    """Whether it is in this computer's keyring."""


@dataclass(frozen=True, slots=True)
class SecretTest:
    """Result of the test of a secret with the servers."""

    id: SecretId
    result: TestResult
    words: str
    fix: str = ""


def secret_states(session: Session, *, keyring: bool = False) -> tuple[SecretState, ...]:
    """Find the secrets on the cluster and, with `keyring`, in this computer's keyring.

    Raises LlmbError if the cluster does not answer as expected, and the errors of `Session.run`.
    """
    files = [FILES[secret_id] for secret_id in SECRETS]
    script = remote_text("enroot_environment.sh", "secret_states.sh")
    result = session.run_script(script, files, only_looks=True)
    lines = [line.split() for line in result.stdout.splitlines()[-len(SECRETS) :]]  # the login shell may print before
    if [len(words) for words in lines] != [2] * len(SECRETS):
        raise LlmbError("Could not check which API keys are on the cluster.", clean(result.stderr).strip())
    return tuple(
        SecretState(secret_id, TITLES[secret_id], ours == "ours", own == "own", keyring and _is_kept(secret_id))
        for secret_id, (ours, own) in zip(SECRETS, lines, strict=True)
    )


def _is_kept(secret_id: SecretId) -> bool:
    try:
        return secret_store.read(secret_id) is not None
    except secret_store.SecretStoreError:
        return False


def try_secret(session: Session, need: SecretNeed, secret: SecretValue | None, sources: Sources) -> SecretTest:
    """Test from the cluster whether a secret gives the access that a plan needs.

    It tests the given secret, or the one on the cluster. Without both, it tests whether the registry provides the image
    to everyone. Raises the errors of `Session.run`.
    """
    if need.id == "ngc":
        answer = ask_registry(session, need.opens[0], secret, sources.registry)
        return _registry_test(answer, need, keyless=secret is None and not _is_there(session, "ngc"))
    return _try_hub_token(session, need, secret, sources.hub)


def _is_there(session: Session, secret_id: SecretId) -> bool:
    return next(state.on_cluster for state in secret_states(session) if state.id == secret_id)


def _registry_test(answer: RegistryAnswer, need: SecretNeed, *, keyless: bool) -> SecretTest:
    image = need.opens[0]
    if answer.granted == "granted":
        words = f"The registry provides {image}" + (" without an API key." if keyless else " with this API key.")
        return SecretTest("ngc", "valid", words)
    if answer.granted == "no such image":
        return SecretTest("ngc", "not tested", f"The registry has no image {image} for this login ({answer.words}).")
    if answer.granted == "unknown":
        return _not_tested(need, answer.words)
    if keyless:
        words = f"The registry does not provide {image} without an API key ({answer.words})."
        return SecretTest("ngc", "refused", words, f"Create an API key at {need.where}, and enter it here.")
    if answer.granted == "login refused":
        fix = f"Copy the complete API key again, or create a new one at {need.where}."
        return SecretTest("ngc", "refused", f"The registry rejects this API key ({answer.words}).", fix)
    fix = "Create the API key for the organisation that has access, or accept the image's terms on its page."
    return SecretTest("ngc", "no access yet", f"The API key is valid, but not for {image} ({answer.words}).", fix)


def _try_hub_token(session: Session, need: SecretNeed, secret: SecretValue | None, hub: str) -> SecretTest:
    if secret is None and not _is_there(session, "hugging-face"):
        return _not_tested(need, "there is none on the cluster")
    credentials = Credentials(token=secret.value) if secret else Credentials(bearer=HUB_TOKEN)
    user = fetch(session, f"{hub}/api/whoami-v2", credentials=credentials)
    if user.status in (401, 403):
        fix = f"Copy the complete token again, or create a new one at {need.where}."
        return SecretTest(need.id, "refused", f"The model hub rejects this token (HTTP {user.status}).", fix)
    if user.status != 200:
        return _not_tested(need, user.error or f"HTTP {user.status}")
    for repository in need.opens:
        url = f"{hub}/{repository}/resolve/main/config.json"
        answer = fetch(session, url, credentials=credentials, head=True)
        if answer.status in (401, 403, 404):
            fix = f"Ask for access at {hub}/{repository}. {need.how_long}".rstrip()
            words = f"The token is valid, but has no access to {repository} yet (HTTP {answer.status})."
            return SecretTest(need.id, "no access yet", words, fix)
        if not 200 <= answer.status < 400:
            return _not_tested(need, answer.error or f"HTTP {answer.status}")
    opened = f", with access to {' and '.join(need.opens)}" if need.opens else ""
    return SecretTest(need.id, "valid", f"The token is valid{opened}.")


def _not_tested(need: SecretNeed, why: str) -> SecretTest:
    return SecretTest(need.id, "not tested", f"The {need.title} could not be tested from the cluster: {why}.")


def access_group(needs: Sequence[SecretNeed], sources: Sources) -> CheckGroup:
    """Make the check group for the API keys of the servers in use. It asks no server that was not reached."""

    def group(cluster: Cluster, report: Preflight) -> tuple[Check, ...]:
        servers = servers_in_use(report)
        in_use = [need for need in needs if _SERVERS[need.id] in servers]
        return secret_checks(login_node(cluster), in_use, sources) if in_use else ()

    return group


def secret_checks(session: Session, needs: Sequence[SecretNeed], sources: Sources) -> tuple[Check, ...]:
    """Check the access of each secret. An optional secret is only tested if it is on the cluster.

    Raises the errors of `Session.run`.
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
