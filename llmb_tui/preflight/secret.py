"""`SecretNeed`: an API key that a run may need, with its source. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from llmb_tui.errors import LlmbError

SecretId = Literal["ngc", "hugging-face"]
SECRETS: tuple[SecretId, ...] = ("ngc", "hugging-face")
TITLES: dict[SecretId, str] = {"ngc": "NGC API key", "hugging-face": "Hugging Face token"}

REGISTRY = "nvcr.io"
"""Host of the registry with the recipes' images."""
SECRETS_FOLDER = ".llmb-tui"
"""Directory of the secrets' files, relative to the user's home directory on a cluster; mode 0700."""
ENROOT_CREDENTIALS = f"{SECRETS_FOLDER}/enroot/.credentials"
"""File of the NGC API key, relative to the home directory. Enroot reads it if ENROOT_CONFIG_PATH is its directory.
The user's own file of that name, in enroot's default directory, is never changed."""
HUB_TOKEN = f"{SECRETS_FOLDER}/hugging-face-token"
"""File of the Hugging Face token, relative to the home directory; HF_TOKEN_PATH may name it."""

# Characters that are literal in a netrc file and in a curl configuration.
_VALUE = re.compile(r"[A-Za-z0-9._~+/=-]{8,512}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A secret. Its value is not in the repr; it is only sent over stdin, and stored in the system's keyring."""

    id: SecretId
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SecretNeed:
    """An API key that a plan requires or may use."""

    id: SecretId
    title: str
    why: str
    where: str
    """Address of the page that creates one."""
    how_long: str
    """Time to get one with the needed access, and the source of that time; may be empty."""
    required: bool
    """False: install and run work without it, unless a server refuses."""
    opens: tuple[str, ...]
    """Image reference, or gated repositories of the model hub, to which it must give access."""


def secret_of(secret_id: str, typed: str) -> SecretValue:
    """Check a typed or pasted secret. Raises LlmbError (exit code 1), without quoting it, if it is invalid."""
    value = typed.strip()
    for name in SECRETS:
        if name == secret_id and _VALUE.fullmatch(value):
            return SecretValue(name, value)
    if secret_id not in SECRETS:
        raise LlmbError(
            f"No secret is named {secret_id!r}.", "", f"The names are {' and '.join(SECRETS)}.", exit_code=1
        )
    raise LlmbError(
        "This is not a valid API key.",
        f"It has {len(value)} characters; a key has 8 to 512, only letters, digits and . _ ~ + / = -.",
        "Copy the complete key again, without quotes.",
        exit_code=1,
    )
