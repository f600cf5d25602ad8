"""`SecretSearch`: searches a file for secrets known to this computer, and for texts with the form of a secret."""

from __future__ import annotations

import base64
import binascii
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from llmb_tui.cluster.kinds import KINDS
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.runai.secret import VARIABLE
from llmb_tui.errors import LlmbError
from llmb_tui.language.redact import TOKENS
from llmb_tui.preflight.secret import SECRETS, TITLES
from llmb_tui.store import secret_store
from llmb_tui.store.files import explained_errors

_VARIABLES = (
    VARIABLE,
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "NGC_API_KEY",
    "NVIDIA_API_KEY",
    "WANDB_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
_SHORTEST = 4
_VALUE = (
    rb"[\"']?[ \t]*[=:][ \t]*(?![\"']?(?i:none|null|true|false|redacted|hidden|removed)\b)"
    rb"(?:\"[^\s\"/$<\[{][^\"\n]{9,}|'[^\s'/$<\[{][^'\n]{9,}"
    rb"|[^\s\"'/$<>()\[\]{},;:=|&\\][^\s\"'$<>()\[\]{},;|\\]{9,})"
)
"""Value of a variable, unless it begins like a path, another variable or a part of a program."""
_SHAPES = {
    **{kind: shape.encode() for kind, shape in TOKENS.items()},
    "a bearer token": rb"[Bb](?:earer|EARER)[ \t]+[A-Za-z0-9._~+/-]{20,}",
    "a private key": rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY-----",
    "a login of a netrc file": rb"\blogin[ \t]+\S{1,256}[ \t]+password[ \t]+[^\s$<*]\S{7,}",
    "a login in an address": rb"://[^\s/:@$<*]{1,256}:[^\s/@$<*]{6,256}@",
    # `HF_TOKEN=…`, `"clientSecret": "…"`.
    "the value of a secret's variable": rb"(?:TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|(?<=[A-Z0-9])_KEY)" + _VALUE,
    "the value of a secret": (
        rb"(?:(?:client|app)_?[Ss]ecret|(?:access|refresh)_?[Tt]oken|api_?[Kk]ey|secret_access_key|password)" + _VALUE
    ),
}
_PATTERNS = {kind: re.compile(shape) for kind, shape in _SHAPES.items()}
_LINE_END = re.compile(rb"\n")
_SAME = re.compile(rb"(.)\1*")


class SecretSearch:
    """Searches for the known secrets, and for known forms of secrets."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known`: secret values by their descriptions; the values appear in no repr and no message."""
        self._known = {kind: _forms(value) for kind, value in known.items()}

    def find(self, path: Path) -> tuple[int, str] | None:
        """Line, from 1 on, and kind of the first secret in a file; None if there is none. Raises LlmbError."""
        with explained_errors("read", path), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:  # an empty file cannot be mapped
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                offset, kind = min(self._in(text), default=(0, ""))
                return (1 + sum(1 for _ in _LINE_END.finditer(text, 0, offset)), kind) if kind else None

    def _in(self, text: mmap.mmap) -> Iterator[tuple[int, str]]:
        """(offset, kind) of the first secret of each kind."""
        for kind, forms in self._known.items():
            yield from ((offset, kind) for form in forms if (offset := text.find(form)) >= 0)
        for kind, pattern in _PATTERNS.items():
            for match in pattern.finditer(text):
                if (kind != "an NGC API key" or _is_ngc(match[0])) and not _is_filler(match[0]):
                    yield match.start(), kind
                    break


def known_secrets(profiles: Iterable[ClusterProfile]) -> dict[str, str]:
    """Secrets that this program was given, by their descriptions: those in the keyring, and in environment variables.

    Raises LlmbError (exit code 1) if there is a keyring that cannot be read.
    """
    known = {f"the value of {name}": os.environ.get(name, "") for name in _VARIABLES}
    try:
        known |= {f"the {TITLES[name]} of the keyring": secret_store.read(name) or "" for name in SECRETS}
    except secret_store.KeyringMissingError:
        pass  # then no secret was ever stored in one
    except secret_store.SecretStoreError as error:
        raise LlmbError(
            "Nothing was exported: the keyring cannot be read, so its secrets cannot be searched for.",
            error.why,
            "Unlock the keyring, and export again.",
            exit_code=1,
        ) from None
    for profile in profiles:
        known |= KINDS[profile.kind].secrets(profile)
    return {name: value.strip() for name, value in known.items() if len(value.strip()) >= _SHORTEST}


def _forms(value: str) -> set[bytes]:
    """Forms in which a value may be written: plain, in JSON, and in the base64 of Kubernetes."""
    return {value.encode(), json.dumps(value)[1:-1].encode(), base64.b64encode(value.encode())}


def _is_ngc(text: bytes) -> bool:
    """Whether a text is an older NGC key: the base64 of 26 letters and digits, a colon and a UUID."""
    try:
        plain = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return False
    return re.fullmatch(rb"[a-z0-9]{26}:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", plain) is not None


def _is_filler(text: bytes) -> bool:
    """Whether a value is a placeholder as in documentation: `HF_TOKEN=xxxxxxxxxx`."""
    value = re.split(rb"[=:]", text, maxsplit=1)[-1].strip(b"\"' \t")
    return len(value) > 1 and _SAME.fullmatch(value) is not None
