"""`SecretNeed`: a key that a run may need, where to get it and how long that takes. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from llmb_tui.errors import Trouble

SecretId = Literal["ngc", "hugging-face"]
SECRETS: tuple[SecretId, ...] = ("ngc", "hugging-face")
TITLES: dict[SecretId, str] = {"ngc": "NGC API key", "hugging-face": "Hugging Face token"}

REGISTRY = "nvcr.io"
"""Where the images of the recipes are published."""
SECRETS_FOLDER = ".llmb-tui"
"""Below the operator's home directory on a cluster: mode 0700, with the files of the secrets in it."""
ENROOT_CREDENTIALS = f"{SECRETS_FOLDER}/enroot/.credentials"
"""Below the home directory. Enroot reads it where ENROOT_CONFIG_PATH names its directory; the operator's own file
of that name, in enroot's own directory, is never touched."""
HUB_TOKEN = f"{SECRETS_FOLDER}/hugging-face-token"
"""Below the home directory; HF_TOKEN_PATH may name it."""

# What goes into a netrc file and a curl configuration: nothing that either takes apart.
_VALUE = re.compile(r"[A-Za-z0-9._~+/=-]{8,512}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A key itself. Its value is in no repr, and goes nowhere but over stdin and into the system's keyring."""

    id: SecretId
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SecretNeed:
    """A key that a plan needs, or can do without."""

    id: SecretId
    title: str
    why: str
    where: str
    """Address of the page that makes one."""
    how_long: str
    """How long it takes to get one that opens what is needed, and who says so; empty where nobody says."""
    required: bool
    """False: install and run work without it, unless something refuses."""
    opens: tuple[str, ...]
    """The image reference, or the model hub's gated repositories, that it has to open."""


def secret_of(secret_id: str, typed: str) -> SecretValue:
    """The secret that somebody typed or pasted. Raises Trouble (exit code 1), without quoting it, for what is none."""
    value = typed.strip()
    for name in SECRETS:
        if name == secret_id and _VALUE.fullmatch(value):
            return SecretValue(name, value)
    if secret_id not in SECRETS:
        raise Trouble(f"No secret is called {secret_id!r}.", "", f"There are {' and '.join(SECRETS)}.", exit_code=1)
    raise Trouble(
        "This cannot be a key.",
        f"It has {len(value)} characters, or some that no key has: only letters, digits and . _ ~ + / = - are in one.",
        "Copy it again, as a whole and without quotes.",
        exit_code=1,
    )
