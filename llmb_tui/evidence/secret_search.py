"""`SecretSearch`: searches a file for secrets known to this computer, and for texts with the form of a secret."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from llmb_tui.cluster.kinds import KINDS
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.runai.secret import VARIABLE
from llmb_tui.errors import LlmbError
from llmb_tui.language.redact import SHORTEST, sent_secrets, written_forms
from llmb_tui.language.secret_forms import find_secrets
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
_SHORTEST_SENT = 8
"""Characters of the shortest secret that was sent and is searched for: a shorter password may be an ordinary word."""
_LINE_END = re.compile(rb"\n")


class SecretSearch:
    """Searches for the known secrets, and for known forms of secrets."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known`: secret values by their descriptions; the values appear in no repr and no message."""
        self._known = {kind: written_forms(value) for kind, value in known.items()}

    def find(self, path: Path) -> tuple[int, str] | None:
        """Line, from 1 on, and kind of the first secret in a file; None if there is none. Raises LlmbError."""
        with explained_errors("read", path), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:  # an empty file cannot be mapped
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                offset, kind = min(self._in(text), default=(0, ""))
                return (1 + sum(1 for _ in _LINE_END.finditer(text, 0, offset)), kind) if kind else None

    def _in(self, text: mmap.mmap) -> Iterator[tuple[int, str]]:
        """(offset, kind) of all texts with the form of a secret, and of the first place of each known secret."""
        for kind, forms in self._known.items():
            yield from ((offset, kind) for form in forms if (offset := text.find(form.encode())) >= 0)
        for secret in find_secrets(text):
            yield secret.start, secret.kind


def known_secrets(profiles: Iterable[ClusterProfile]) -> dict[str, str]:
    """Secrets that this program was given, by their descriptions: those in the keyring, and in environment variables.

    Raises LlmbError (exit code 1) if there is a keyring that cannot be read.
    """
    known = {f"the value of {name}": os.environ.get(name, "") for name in _VARIABLES}
    sent = sorted(value for value in sent_secrets if len(value) >= _SHORTEST_SENT)
    known |= {f"secret {number} that this program has sent": value for number, value in enumerate(sent, 1)}
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
    return {name: value.strip() for name, value in known.items() if len(value.strip()) >= SHORTEST}
