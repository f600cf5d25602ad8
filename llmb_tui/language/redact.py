"""`without_secrets`: a text in which what looks like a key, a token or a password is hidden. Pure.

What this program writes holds none, and a profile that does is refused. What others started or wrote may hold what they
like.
"""

from __future__ import annotations

import re

TOKENS = {
    "a Hugging Face token": r"(?:hf|api_org)_[A-Za-z0-9]{16,}",
    "an NVIDIA API key": r"nvapi-[A-Za-z0-9_-]{16,}",
    # An older key of NGC, which is base64.
    "an NGC API key": r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{82,84}={0,2}(?![A-Za-z0-9+/=])",
    "a JSON web token": r"eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]+",
    "an AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a GitHub or GitLab token": r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,})",
    "a key of a web service": r"\b(?:sk-[\w-]{20,}|xox[abp]-[\w-]{12,})",
}
"""Regular expressions by what they find. They are ASCII, so that they are one for text and for bytes."""
HIDDEN = "[hidden]"
_NAME = r"[A-Za-z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIALS?)"
_SHAPES = (
    *TOKENS.values(),
    r"(?<=\b[Bb]earer )[A-Za-z0-9._~+/=-]{20,}",
    r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)",
)
_ANY = re.compile("|".join(_SHAPES))
# The value of a variable or of a key with such a name; another variable in its place is none, nor is a path.
_NAMED = re.compile(
    rf"(?i)\b({_NAME}[\"']?[ \t]*[=:][ \t]*)(\"[^\"$\n][^\"\n]*\"|'[^'\n]+'|[^\s\"'$;&|,/][^\s\"';,]{{3,}})"
)
_IS_NAME = re.compile(rf"(?i){_NAME}")


def without_secrets(text: str) -> str:
    """The text, with `HIDDEN` in the place of each."""
    return _NAMED.sub(rf"\1{HIDDEN}", _ANY.sub(HIDDEN, text))


def hidden_value(name: str, value: str) -> str:
    """The value of a variable as it may be shown: hidden where its name says that it is a secret, or its shape does."""
    return HIDDEN if value and _IS_NAME.fullmatch(name) else without_secrets(value)
