"""`without_secrets` hides the parts of a text that look like a key, a token or a password. Pure.

This program writes no secrets and refuses a profile that has one. Runs and files of other programs can have them.
"""

from __future__ import annotations

import re

TOKENS = {
    "a Hugging Face token": r"(?:hf|api_org)_[A-Za-z0-9]{16,}",
    "an NVIDIA API key": r"nvapi-[A-Za-z0-9_-]{16,}",
    # An older NGC key, in base64.
    "an NGC API key": r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{82,84}={0,2}(?![A-Za-z0-9+/=])",
    "a JSON web token": r"eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]+",
    "an AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a GitHub or GitLab token": r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,})",
    "a key of a web service": r"\b(?:sk-[\w-]{20,}|xox[abp]-[\w-]{12,})",
}
"""Regular expressions by the kind of secret that they match; ASCII, so that they also work on bytes."""
HIDDEN = "[hidden]"
_NAME = r"[A-Za-z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIALS?)"
_SHAPES = (
    *TOKENS.values(),
    r"(?<=\b[Bb]earer )[A-Za-z0-9._~+/=-]{20,}",
    r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)",
)
_ANY = re.compile("|".join(_SHAPES))
# The value of a variable or a key with such a name. A reference to another variable and a path are no secrets.
_NAMED = re.compile(
    rf"(?i)\b({_NAME}[\"']?[ \t]*[=:][ \t]*)(\"[^\"$\n][^\"\n]*\"|'[^'\n]+'|[^\s\"'$;&|,/][^\s\"';,]{{3,}})"
)
_IS_NAME = re.compile(rf"(?i){_NAME}")


def without_secrets(text: str) -> str:
    """Replace each secret in a text by `HIDDEN`."""
    return _NAMED.sub(rf"\1{HIDDEN}", _ANY.sub(HIDDEN, text))


def hidden_value(name: str, value: str) -> str:
    """Value of a variable for display: `HIDDEN` for a secret's name; secrets in other values are hidden."""
    return HIDDEN if value and _IS_NAME.fullmatch(name) else without_secrets(value)
