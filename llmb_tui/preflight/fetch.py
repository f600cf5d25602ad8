"""`fetch`: ask a web server from the cluster, as what is installed there will; a secret goes over stdin only."""

from __future__ import annotations

from dataclasses import dataclass, field

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.language.text import clean_line

_DEADLINE_S = 30.0
_BEGINS = "\nllmb-fetch\n"


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """What a server answered. Header and body are remote text."""

    status: int
    """0: there was no answer."""
    header: str
    body: str
    error: str
    """What curl said where there was no answer; clean."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """How a request says who asks; at most one of these. What is secret consists of what `secret_of` lets through."""

    token: str = field(default="", repr=False)
    """A bearer token."""
    login: str = field(default="", repr=False)
    """`user:password`."""
    netrc: str = ""
    """File with logins, below the home directory of the cluster, used if it is there."""
    bearer: str = ""
    """File that is a bearer token, likewise."""


NOBODY = Credentials()


def fetch(
    session: Session, url: str, *, accept: str = "", credentials: Credentials = NOBODY, head: bool = False
) -> WebAnswer:
    """One request with the cluster's curl, answered within 15 s or not at all. Raises what `Session.run` raises."""
    lines = [f'header = "Accept: {accept}"'] if accept else []
    lines += [f'header = "Authorization: Bearer {credentials.token}"'] if credentials.token else []
    lines += [f'user = "{credentials.login}"'] if credentials.login else []
    lines += ["head"] if head else []
    config = "".join(f"{line}\n" for line in lines).encode()
    arguments = [url, credentials.netrc, credentials.bearer]
    result = session.run_script(remote_text("fetch.sh"), arguments, stdin=config, deadline_s=_DEADLINE_S)
    _, _, text = result.stdout.replace("\r\n", "\n").partition(_BEGINS)
    page, _, status = text.rstrip("\n").rpartition("\n")
    if not status.isdecimal() or int(status) == 0:
        complaints = result.stderr.strip().splitlines() or [f"curl ended with exit code {result.exit_code}."]
        return WebAnswer(0, "", "", clean_line(complaints[-1]))
    header = ""
    while page.startswith("HTTP/"):  # a proxy's answer comes before the server's
        header, _, page = page.partition("\n\n")
    return WebAnswer(int(status), header, page.rstrip("\n"), "")
