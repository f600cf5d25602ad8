"""`without_secrets` hides the parts of a text that are secrets or look like one; `server_words` cleans servers' words.

This program writes no secrets and refuses a profile that has one. Servers, and runs and files of other programs, can
have them.
"""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote

from llmb_tui.language.secret_forms import find_secrets
from llmb_tui.language.text import clean

HIDDEN = "[hidden]"
SHORTEST = 4
"""Characters of the shortest known secret that is searched for: a shorter one occurs in ordinary words."""
_LONGEST_READ = 1 << 16
_IS_SECRET_NAME = re.compile(r"(?i)\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_?KEY|CREDENTIALS?)")
sent_secrets: set[str] = set()
"""Values of `remember_secret`, for the whole process."""


def remember_secret(value: str) -> None:
    """Hide this value from now on in all words of servers: it was sent to one, which may repeat it."""
    if len(value) >= SHORTEST:
        sent_secrets.add(value)


def written_forms(value: str) -> set[str]:
    """Ways in which a value may be written: plain, in JSON, in an address, and in the base64 of Kubernetes."""
    json_text = json.dumps(value)[1:-1]
    return {
        value,
        json_text,
        json_text.replace("/", r"\/"),
        quote(value, ""),
        base64.b64encode(value.encode()).decode(),
    }


def without_sent_secrets(text: str) -> str:
    """Replace each remembered secret in a text by `HIDDEN`: for a question, which may name an address to open."""
    for value in sorted(sent_secrets, key=len, reverse=True):
        for written in written_forms(value):
            text = text.replace(written, HIDDEN)
    return text


def without_secrets(text: str) -> str:
    """Replace each secret in a text, by its form or because it is remembered, by `HIDDEN`."""
    text = without_sent_secrets(text)
    data = text.encode(errors="surrogatepass")
    parts, end = list[bytes](), 0
    for secret in sorted(find_secrets(data)):
        if secret.end > end:
            parts += [data[end : secret.start], HIDDEN.encode()] if secret.start >= end else []
            end = secret.end
    return b"".join((*parts, data[end:])).decode(errors="surrogatepass") if end else text


def server_words(text: str, longest: int = 4000) -> str:
    """Words of a server or of a program there, for a message: clean, without secrets, and not too long.

    All such words go through this function before they are shown, stored or put into an error.
    """
    words = without_secrets(clean(text[:_LONGEST_READ])).strip()
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def hidden_value(name: str, value: str) -> str:
    """Value of a variable for display: `HIDDEN` for a secret's name; secrets in other values are hidden."""
    return HIDDEN if value and _IS_SECRET_NAME.fullmatch(name) else without_secrets(value)
