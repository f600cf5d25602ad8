"""Secrets on a cluster: which are there, putting them there, testing them from there, and taking them away again.

A secret travels over stdin into a file of mode 0600 in a directory of mode 0700 below the operator's home directory.
It is in no argument, script, log or error. What lies on the cluster is never read back here.
"""

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
from llmb_tui.launch.fetch import Credentials, fetch
from llmb_tui.launch.registry import RegistryAnswer, ask_registry
from llmb_tui.launch.secret import (
    ENROOT_CREDENTIALS,
    HUB_TOKEN,
    REGISTRY,
    SECRETS,
    SECRETS_FOLDER,
    TITLES,
    SecretId,
    SecretNeed,
    SecretValue,
    secret_of,
)
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.network import HUB, servers_in_use
from llmb_tui.preflight.network import REGISTRY as REGISTRY_CHECK
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.store import secret_store

TestResult = Literal["valid", "refused", "no access yet", "not tested"]

# What the key of the registry has to be given for: enroot's documentation asks for both.
_LOGIN_HOSTS = (REGISTRY, "authn.nvidia.com")
_SERVERS: dict[SecretId, str] = {"ngc": REGISTRY_CHECK, "hugging-face": HUB}
_FILES: dict[SecretId, str] = {"ngc": ENROOT_CREDENTIALS, "hugging-face": HUB_TOKEN}

# Prints the path of the file to write, on a line of its own: a login shell may print before it, without a line end too.
# $1 is the folder, $2 the file, both below the home directory.
_PREPARE = """
umask 077
mkdir -p "$(dirname "$HOME/$2")" && chmod 700 "$HOME/$1" "$(dirname "$HOME/$2")" && printf '\\n%s\\n' "$HOME/$2"
"""


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
    files = [_FILES[secret_id] for secret_id in SECRETS]
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


def give_secret(session: Session, secret_id: str, typed: str | None, *, keep: bool) -> str:
    """Put what was typed, or else what the keyring keeps, on the cluster; with `keep` also into the keyring.

    The answer says in a sentence where it is now, and why it is not in the keyring if it should be. Raises Trouble
    (exit code 1) for what can be no secret, Trouble when it cannot be written, and what `Session.run` raises.
    """
    secret = secret_of(secret_id, typed) if typed is not None else _from_keyring(secret_id)
    where = f"The {TITLES[secret.id]} is in {put_secret(session, secret)}, for you alone."
    if not keep:
        return where
    try:
        secret_store.keep(secret.id, secret.value)
    except secret_store.NotKept as problem:
        return f"{where} It is not kept on this computer: {problem.why}"
    return f"{where} This computer's keyring keeps it too."


def _from_keyring(secret_id: str) -> SecretValue:
    value = secret_store.read(secret_id)
    if value is None:
        raise Trouble("This computer's keyring keeps no such key.", "", "Type or paste it.", exit_code=1)
    return secret_of(secret_id, value)


def forget_secret(session: Session, secret_id: SecretId) -> str:
    """Remove a secret from the cluster and from the keyring; the answer says so.

    One that is not there is no error. Raises Trouble when it cannot be removed from the cluster, and what `Session.run`
    raises.
    """
    session.require_changes()
    # And what a write of it left that was killed: it holds the secret too.
    result = session.run_script('rm -f "$HOME/$1" "$HOME/$1".????????.part', [_FILES[secret_id]])
    if result.exit_code != 0:
        raise Trouble(f"The {TITLES[secret_id]} is still on the cluster.", clean(result.stderr).strip())
    try:
        secret_store.forget(secret_id)
    except secret_store.NotKept:
        return f"The {TITLES[secret_id]} is no longer on the cluster; this computer has no keyring that could keep it."
    return f"The {TITLES[secret_id]} is no longer on the cluster, nor in this computer's keyring."


def put_secret(session: Session, secret: SecretValue) -> str:
    """Write a secret into its file on the cluster, all of it or nothing; the answer is the file's path, clean.

    Raises Trouble when it cannot be written, and what `Session.run` raises.
    """
    session.require_changes()
    result = session.run_script(_PREPARE, [SECRETS_FOLDER, _FILES[secret.id]])
    path = result.stdout.rstrip("\n").rpartition("\n")[2]  # a login shell may print before
    if result.exit_code != 0 or not path.startswith("/"):
        raise Trouble(
            f"The {TITLES[secret.id]} could not be put on the cluster.",
            clean(result.stderr).strip(),
            "Check that your home directory there can be written, and its quota.",
        )
    text = f"{secret.value}\n"
    if secret.id == "ngc":
        text = "".join(f"machine {host} login $oauthtoken password {secret.value}\n" for host in _LOGIN_HOSTS)
    session.write_file(path, text.encode())
    return clean(path)


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
