"""Secrets on a cluster: putting them there and taking them away again.

A secret travels over stdin into a file of mode 0600 in a directory of mode 0700 below the operator's home directory.
It is in no argument, script, log or error.
"""

from __future__ import annotations

from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean
from llmb_tui.preflight.access import FILES
from llmb_tui.preflight.secret import REGISTRY, SECRETS_FOLDER, TITLES, SecretId, SecretValue, secret_of
from llmb_tui.store import secret_store

# What the key of the registry has to be given for: enroot's documentation asks for both.
_LOGIN_HOSTS = (REGISTRY, "authn.nvidia.com")
# Prints the path of the file to write, on a line of its own: a login shell may print before it, without a line end too.
# $1 is the folder, $2 the file, both below the home directory.
_PREPARE = """
umask 077
mkdir -p "$(dirname "$HOME/$2")" && chmod 700 "$HOME/$1" "$(dirname "$HOME/$2")" && printf '\\n%s\\n' "$HOME/$2"
"""


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
    result = session.run_script('rm -f "$HOME/$1" "$HOME/$1".????????.part', [FILES[secret_id]])
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
    result = session.run_script(_PREPARE, [SECRETS_FOLDER, FILES[secret.id]])
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
