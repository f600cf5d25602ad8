"""Put API keys on a cluster, and remove them.

A secret is sent over stdin into a file of mode 0600 in a directory of mode 0700 below the operator's home directory.
It never appears in an argument, script, log or error.
"""

from __future__ import annotations

from llmb_tui.cluster.session import Session
from llmb_tui.errors import LlmbError
from llmb_tui.language.redact import remember_secret, server_words
from llmb_tui.language.text import clean
from llmb_tui.preflight.access import FILES
from llmb_tui.preflight.secret import REGISTRY, SECRETS_FOLDER, TITLES, SecretId, SecretValue, secret_of
from llmb_tui.store import secret_store

# Hosts of the registry that need the key: enroot's documentation names both.
_LOGIN_HOSTS = (REGISTRY, "authn.nvidia.com")
# Prints the path of the file to write, on its own line, because a login shell may print before it, even without a line
# end. $1 is the folder, $2 the file, both below the home directory.
_PREPARE = """
umask 077
mkdir -p "$(dirname "$HOME/$2")" && chmod 700 "$HOME/$1" "$(dirname "$HOME/$2")" && printf '\\n%s\\n' "$HOME/$2"
"""


def give_secret(session: Session, secret_id: str, typed: str | None, *, keep: bool) -> str:
    """Put a secret on the cluster: the typed one, or else the keyring's; with `keep`, also store it in the keyring.

    Returns a sentence with its storage place and, if the keyring should have it and does not, the reason. Raises
    LlmbError (exit code 1) for an invalid secret, LlmbError if it cannot be written, and the errors of `Session.run`.
    """
    secret = secret_of(secret_id, typed) if typed is not None else _from_keyring(secret_id)
    where = f"The {TITLES[secret.id]} is in {put_secret(session, secret)}, readable only by you."
    if not keep:
        return where
    try:
        secret_store.keep(secret.id, secret.value)
    except secret_store.SecretStoreError as problem:
        return f"{where} It is not stored on this computer: {problem.why}"
    return f"{where} This computer's keyring also stores it."


def _from_keyring(secret_id: str) -> SecretValue:
    value = secret_store.read(secret_id)
    if value is None:
        raise LlmbError("This computer's keyring has no such API key.", "", "Type or paste it.", exit_code=1)
    return secret_of(secret_id, value)


def forget_secret(session: Session, secret_id: SecretId) -> str:
    """Remove a secret from the cluster and from the keyring; return a sentence that confirms it.

    A missing secret is not an error. Raises LlmbError if it cannot be removed from the cluster, and the errors of
    `Session.run`.
    """
    session.require_changes()
    # The partial file of a write that was killed holds the secret, too.
    result = session.run_script('rm -f "$HOME/$1" "$HOME/$1".????????.part', [FILES[secret_id]])
    if result.exit_code != 0:
        raise LlmbError(f"The {TITLES[secret_id]} could not be removed from the cluster.", server_words(result.stderr))
    try:
        secret_store.forget(secret_id)
    except secret_store.SecretStoreError:
        return f"The {TITLES[secret_id]} is no longer on the cluster; this computer has no usable keyring."
    return f"The {TITLES[secret_id]} is no longer on the cluster, nor in this computer's keyring."


def put_secret(session: Session, secret: SecretValue) -> str:
    """Write a secret into its file on the cluster, completely or not at all; return the file's path, cleaned.

    Raises LlmbError if it cannot be written, and the errors of `Session.run`.
    """
    session.require_changes()
    remember_secret(secret.value)
    result = session.run_script(_PREPARE, [SECRETS_FOLDER, FILES[secret.id]])
    path = result.stdout.rstrip("\n").rpartition("\n")[2]  # behind any output of the login shell
    if result.exit_code != 0 or not path.startswith("/"):
        raise LlmbError(
            f"The {TITLES[secret.id]} could not be written to the cluster.",
            server_words(result.stderr),
            "Check that you may write to your home directory there, and its quota.",
        )
    text = f"{secret.value}\n"
    if secret.id == "ngc":
        text = "".join(f"machine {host} login $oauthtoken password {secret.value}\n" for host in _LOGIN_HOSTS)
    session.write_file(path, text.encode())
    return clean(path)
