"""`fetch`: requests to web servers from the cluster, where installs will make them. Secrets are sent over stdin."""

from __future__ import annotations

from dataclasses import dataclass, field

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.language.redact import remember_secret, server_words
from llmb_tui.language.text import clean_line, count_in

_DEADLINE_S = 30.0
_BEGINS = "\nllmb-fetch\n"


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """Answer of a web server. Header and body are remote text."""

    status: int
    """HTTP status; 0: there was no answer."""
    header: str
    body: str
    error: str
    """Message of curl if there was no answer; clean."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a request, at most one of these. The characters of secrets are those that `secret_of` allows."""

    token: str = field(default="", repr=False)
    """A bearer token."""
    login: str = field(default="", repr=False)
    """`user:password`."""
    netrc: str = ""
    """File with logins, relative to the home directory on the cluster; may be missing."""
    bearer: str = ""
    """File with a bearer token, relative to the home directory on the cluster; may be missing."""


NOBODY = Credentials()


def fetch(  # noqa: PLR0913 - the parts of a request
    session: Session,
    url: str,
    *,
    accept: str = "",
    credentials: Credentials = NOBODY,
    head: bool = False,
    as_enroot: bool = False,
) -> WebAnswer:
    """Make one request with the cluster's curl, which waits 15 s at most. Raises the errors of `Session.run`.

    `as_enroot`: through the proxy, and with the certificates, of Enroot's configuration.
    """
    for secret in (credentials.token, credentials.login.partition(":")[2]):
        remember_secret(secret)
    lines = [f'header = "Accept: {accept}"'] if accept else []
    lines += [f'header = "Authorization: Bearer {credentials.token}"'] if credentials.token else []
    lines += [f'user = "{credentials.login}"'] if credentials.login else []
    lines += ["head"] if head else []
    config = "".join(f"{line}\n" for line in lines).encode()
    arguments = [url, credentials.netrc, credentials.bearer, *(["as_enroot"] if as_enroot else [])]
    script = remote_text("enroot_environment.sh", "fetch.sh")
    result = session.run_script(script, arguments, stdin=config, deadline_s=_DEADLINE_S)
    _, _, text = result.stdout.replace("\r\n", "\n").partition(_BEGINS)
    page, _, status = text.rstrip("\n").rpartition("\n")
    if not count_in(status):
        messages = result.stderr.strip().splitlines() or [f"curl returned exit code {result.exit_code}."]
        return WebAnswer(0, "", "", clean_line(server_words(messages[-1])))
    header = ""
    while page.startswith("HTTP/"):  # a proxy's answer comes before the server's
        header, _, page = page.partition("\n\n")
    return WebAnswer(int(status), header, page.rstrip("\n"), "")
