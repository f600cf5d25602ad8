"""`find_secrets`: places in a text that have the form of a secret. The only list of such forms.

The time of a search is proportional to the length of the text, also for a text that was made to slow it down: a pattern
is tried only where one of its anchors stands, and compares a bounded number of characters or continues after them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mmap import mmap

_PIECE = 1 << 20
_OVERLAP = 1 << 8
"""Bytes that neighbouring pieces share; longer than every anchor and than an NGC API key."""


class Secret(NamedTuple):
    """Place of a secret in a text, as offsets of bytes, and its kind."""

    start: int
    end: int
    kind: str


class _Form(NamedTuple):
    """Form of a secret. The secret is the pattern's group `it`; without this group it is the whole match.

    If the group exists and is not part of a match, nothing was found, and the search continues after the match.
    """

    kind: str
    anchors: str
    """Texts in small letters. The pattern is tried wherever one of them stands, in small or capital letters."""
    pattern: str
    is_one: Callable[[bytes], bool] = bool


_QUOTE = r"\\{0,3}[\"']"
_SPACE = r"\s{1,64}+"
_GAP = r"[ \t]{0,64}+"
_IS = rf"(?:{_QUOTE})?\]?{_GAP}(?:=>|:=|[=:]){_GAP}"
"""Text between a name and its value: `=`, `: `, `": "`, `"] = '`, `\\": \\"`, ` => `."""
_END = r"(?:[\s\"',;!?)\]}<\\]|[.:](?:\s|\Z)|\Z)"
_IS_NO_PLACEHOLDER = (
    rf"(?!(?:{_QUOTE})?(?:(?i:none|null|true|false|redacted|hidden|removed|undefined|unset|your[_-]\w*)\b"
    rf"|(?P<same>[^\s\"'])(?P=same){{3,}}+{_END}))"
)
_IS_NO_WORD = rf"(?![A-Za-z_.-]++{_END})"
"""In a message and in a line of a program, a bare value of letters only is a word or the name of a variable."""
_IS_NO_PLAIN_WORD = rf"(?![A-Z]?[a-z_.-]++{_END})"
_IS_NO_CALL = r"(?![A-Za-z_][\w.]*+[(\[])"
_IS_NO_NUMBER = rf"(?!(?:{_QUOTE})?(?:[-+]?[0-9][0-9.,_]*+(?:[eE][-+]?[0-9]+)?|0x[0-9a-fA-F]+)%?{_END})"
_HAS_DIGIT = rf"(?=(?:{_QUOTE})?[^\s\"']{{0,80}}?[0-9])"


def _value(shortest: int, *conditions: str) -> str:
    """Pattern of a value, with quotation marks or without. Paths, templates and parts of programs are no values."""
    rest = max(0, shortest - 1)
    quoted = (
        rf"\\{{0,3}}{mark}[^\s{mark}/$<\[{{(%*,);\\][^{mark}\n\\]{{{rest},}}+(?:\\{{0,3}}{mark})?" for mark in "\"'"
    )
    bare = rf"{_IS_NO_CALL}[^\s\"'/$<>()\[\]{{}},;:=|&\\*%~.-][^\s\"';,]{{{rest},}}+"
    return f"{_IS_NO_PLACEHOLDER}{''.join(conditions)}(?P<it>{'|'.join((*quoted, bare))})"


def _assigned(name: str, shortest: int, condition: str = "") -> str:
    """Pattern of a name and its value. After a bare `=` without spaces, a value may consist of letters."""
    return rf"{name}(?:(?:{_QUOTE})?\]?={condition}|{_IS}{_IS_NO_WORD}){_value(shortest)}"


_KEYS = "access account api auth client db encryption master private service signing storage subscription".split()
_NO_SECRETS = "bos cls end eod eos eot image last mask next pad per sep start stop unk".split()
"""Words before `token` in the settings and figures of a training."""
_NAME = (
    f"(?i:{''.join(f'(?<!{word}[ _-])' for word in _NO_SECRETS)}token"
    f"|(?:{'|'.join(f'(?<={word})|(?<={word}[ _-])' for word in _KEYS)})key)"
)
_PASSWORDS = (
    r"(?i:passw(?:or)?d|passphrase|(?<![a-z])pwd|(?<=[_-])pass"
    r"|(?<!pull)(?<!pull[_-])secret(?:[_-]?access)?(?:[_-]?key)?)"
)
_VARIABLE = (
    f"{''.join(f'(?<!{word.upper()}_)' for word in _NO_SECRETS)}"
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIALS?)"
)
_OPTION = r"(?i:(?:[a-z0-9]{1,20}[_-]){0,4}(?:token|passw(?:or)?d|passphrase|secret|(?:api|access|secret)[_-]?key))"
_IS_NO_NAME = rf"(?!(?:[A-Za-z]*+[_.][A-Za-z_.]*+|(?i:pass|passwd|password|secret|pwd)){_END})"
_SCHEME = r"(?i:basic|bearer|token|digest|apikey|negotiate)[ \t]{1,8}+"


def _is_login(text: bytes) -> bool:
    """Whether a text is the base64 of a user's name, a colon and a password."""
    plain = _from_base64(text)
    return b":" in plain[1:-1] and plain.isascii() and plain.decode().isprintable()


def _is_ngc(text: bytes) -> bool:
    """Whether a text is the base64 of 26 letters and digits, a colon and a UUID, as an older NGC key."""
    return re.fullmatch(rb"[a-z0-9]{26}:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", _from_base64(text)) is not None


def _from_base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error):
        return b""


_FORMS = (
    _Form("a Hugging Face token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{16,}+"),
    _Form("an NVIDIA API key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{16,}+"),
    _Form(
        "a JSON web token", "eyj", r"(?P<it>eyJ[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]++)|eyJ[A-Za-z0-9_-]*+"
    ),
    _Form("an AWS key", "akia asia", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _Form("a Google key", "aiza ya29. gocspx-", r"AIza[A-Za-z0-9_-]{35}|(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}+"),
    _Form(
        "a GitHub or GitLab token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glft- glsoat- glrt- glcbt- glptt- glagent- gloas-",
        r"gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_\w{22,}+|gl(?:pat|dt|ft|soat|rt|cbt|ptt|agent|oas)-[\w-]{20,}+",
    ),
    _Form(
        "a key of a web service",
        "sk- xox k_live_ sg. sq0csp- npm_ pypi- dckr_pat_ dapi hvs. akcp wandb_v1_",
        r"(?<![A-Za-z0-9])(?:sk-(?=[\w-]{0,60}?[0-9])[\w-]{20,}+|xox[abeprs]-[\w-]{12,}+|SG\.[\w-]{22}\.[\w-]{43}"
        r"|sq0csp-[\w-]{43}|npm_[A-Za-z0-9]{36}|pypi-(?=[\w-]{0,60}?[0-9A-Z])[\w-]{16,}+|dckr_pat_[\w-]{20,}+|dapi[0-9a-f]{32}"
        r"|hvs\.[\w-]{24,}+|AKCp[A-Za-z0-9]{10,}+|wandb_v1_[\w-]{20,}+)|k_live_[A-Za-z0-9]{16,}+",
    ),
    _Form("a web hook of Slack", "hooks.slack.com/", r"hooks\.slack\.com/services/(?P<it>[\w/]{20,}+)"),
    _Form("a token of Telegram", ":aa", r"(?<=[0-9]{8}):(?P<it>AA[\w-]{33})(?![\w-])"),
    _Form(
        "a private key",
        "-----begin",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
        r"(?:-----END [A-Z0-9 ]{0,80}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    _Form(
        "a login of a netrc file",
        "machine login",
        rf"(?<!\w)(?:machine{_SPACE}\S{{1,256}}+{_SPACE}login{_SPACE}|login{_SPACE}(?=\S{{1,256}}+{_SPACE}password{_SPACE}"
        rf"{_IS_NO_WORD}))\S{{1,256}}+{_SPACE}(?:account{_SPACE}\S{{1,256}}+{_SPACE})?"
        rf"password{_SPACE}(?P<it>[^\s$<*{{]\S{{3,}}+)",
    ),
    _Form("a login in an address", "://", r"://(?P<it>[^\s/:@$<*\"']{0,256}+:[^\s/@$<*\"']{3,256}+)@"),
    _Form(
        "a bearer token",
        "bearer",
        rf"(?i:bearer)[ \t]{{1,8}}+(?P<it>{_HAS_DIGIT}[A-Za-z0-9._~+/-]{{16,}}+=*)",
    ),
    _Form("a basic login", "basic", r"(?i:basic)[ \t]{1,8}+(?P<it>[A-Za-z0-9+/]{8,400}+={0,2})", _is_login),
    _Form("a login of a registry", '"auth', rf'"auth{_IS}{_QUOTE}(?P<it>[A-Za-z0-9+/]{{8,4000}}+={{0,2}})', _is_login),
    _Form(
        "the login of a request",
        "authorization",
        rf"(?i:authorization){_IS}(?:{_QUOTE})?(?:{_SCHEME})?{_IS_NO_PLAIN_WORD}{_IS_NO_CALL}"
        r"(?P<it>[A-Za-z0-9._~+/-]{6,}+=*)",
    ),
    _Form("a cookie", "cookie", rf"(?i:cookie){_IS}(?:{_QUOTE})?(?P<it>[\w.-]{{1,64}}=[^\s\"';]{{6,}}+[^\"'\n]*)"),
    _Form("a cookie", "cookie-1", r"(?i:cookie)-1\s{1,8}+(?P<it>[0-9a-f]{32})"),
    _Form(
        "the signature of an address",
        "signature= sig=",
        rf"(?i:signature|(?<![a-z])sig)=(?P<it>{_HAS_DIGIT}[A-Za-z0-9%+/_-]{{20,}}+=*)",
    ),
    # Older keys of WandB have no form of their own.
    _Form(
        "a key of WandB",
        "wandb",
        r"(?i:wandb)(?:(?=[^\n]{0,300}?(?i:key|login)[^\n]{0,40}?(?<![0-9a-f])(?P<it>[0-9a-f]{40})(?![0-9a-f]))|)"
        r"[^\n]{0,300}+",
    ),
    _Form(
        "the password of a command",
        "curl",
        r"(?i:curl)(?:(?=[^\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,64}:(?P<it>[^\s\"'$<*]{4,}))|)"
        r"[^\n]{0,300}+",
    ),
    _Form("the password of a command", "sshpass", rf"sshpass[ \t]{{1,8}}+-p[ \t]{{0,8}}+{_value(4)}"),
    _Form("the value of a secret's variable", "token secret pass apikey credential", _assigned(_VARIABLE, 8)),
    _Form("the value of a secret", "pass pwd secret", _assigned(_PASSWORDS, 6, _IS_NO_NAME)),
    _Form("the value of a secret's variable", "key", rf"(?<=[A-Z0-9]_)KEY{_IS}{_value(8, _HAS_DIGIT, _IS_NO_NUMBER)}"),
    _Form("the value of a secret", "token key", rf"{_NAME}{_IS}{_value(8, _HAS_DIGIT, _IS_NO_NUMBER)}"),
    _Form(
        "the value of an option",
        "--",
        rf"-++(?:{_OPTION}(?:{_QUOTE})?,?[ \t]{{1,8}}+{_IS_NO_WORD}{_value(6)})?",
    ),
)


@cache  # compiling takes longer than the search of a short text, and no search happens before the first frame
def _patterns() -> dict[bytes, list[tuple[_Form, re.Pattern[bytes]]]]:
    """Forms with their compiled patterns, by anchor."""
    by_anchor: dict[bytes, list[tuple[_Form, re.Pattern[bytes]]]] = {}
    for form in _FORMS:
        pattern = re.compile(form.pattern.encode())
        for anchor in form.anchors.split():
            by_anchor.setdefault(anchor.encode(), []).append((form, pattern))
    return by_anchor


_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_IN_BASE64 = bytes(ord("x") if chr(byte) in _BASE64 else ord(" ") for byte in range(256))
_NGC_KEY = re.compile(rb"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{84}(?![A-Za-z0-9+/=])")


def find_secrets(text: bytes | mmap) -> Iterator[Secret]:
    """All places with the form of a secret, in no order; they may overlap."""
    compared = dict.fromkeys(_patterns(), 0)
    for start in range(0, len(text), _PIECE):
        piece = text[start : start + _PIECE + _OVERLAP]
        small = piece.lower()
        for anchor, forms in _patterns().items():
            place = small.find(anchor, max(0, compared[anchor] - start))
            while 0 <= place < _PIECE:
                end = start + place + 1
                for form, pattern in forms:
                    if match := pattern.match(text, start + place):
                        end = match.end()
                        found = match.span("it") if "it" in pattern.groupindex else match.span()
                        if found[0] >= 0 and form.is_one(text[found[0] : found[1]]):
                            yield Secret(*found, form.kind)
                        break
                compared[anchor] = end
                place = small.find(anchor, end - start)
        yield from _ngc_keys(text, start, piece.translate(_IN_BASE64))


def _ngc_keys(text: bytes | mmap, start: int, runs: bytes) -> Iterator[Secret]:
    """Older NGC keys, which begin with no fixed text, in one piece of a text. `runs` has an x for each base64 digit."""
    place = runs.find(b"x" * 84)
    while 0 <= place < _PIECE:
        if (match := _NGC_KEY.match(text, start + place)) and _is_ngc(match[0]):
            yield Secret(*match.span(), "an NGC API key")
        end = runs.find(b" ", place)
        place = -1 if end < 0 else runs.find(b"x" * 84, end)
