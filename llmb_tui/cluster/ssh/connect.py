"""`connect`: makes a live `Connection` from a profile, with host key check and login on each host of the route.

It uses paramiko's Transport directly: SSHClient.connect asks on the terminal, which the screen occupies.
"""

from __future__ import annotations

import logging
import socket
import time
from contextlib import ExitStack

from llmb_tui.cluster.failures import UnreachableError
from llmb_tui.cluster.login_profile import LoginProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.authentication import Login, UntriedKeysError
from llmb_tui.cluster.ssh.connection import Connection
from llmb_tui.cluster.ssh.handshake import LoginTransport, SshRefusedError, shake_hands
from llmb_tui.cluster.ssh.host_keys import AcceptedKeys
from llmb_tui.cluster.ssh.keys import UnlockedKeys
from llmb_tui.cluster.ssh.openssh import HostSettings, jump_route
from llmb_tui.cluster.ssh.sockets import ForwardedSocket, ProxyCommand, open_tcp, open_through

# Without this handler, paramiko's tracebacks would be printed over the screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

REFUSED_S = 8.0
"""Time for which a refused connection is tried again, seconds: a busy server refuses connections at random."""
_FIRST_PAUSE_S = 0.3
# With MaxAuthTries at sshd's default of 6 this offers more keys than any user has.
_MOST_CONNECTIONS = 6

_Hop = tuple[LoginTransport, HostSettings]


def connect(
    profile: LoginProfile,
    prompter: Prompter,
    *,
    unlocked: UnlockedKeys | None = None,
    accepted: AcceptedKeys | None = None,
) -> Connection:
    """Connect, check the host keys and log in on every host of the route; questions go to `prompter`.

    `unlocked` holds unlocked private keys, `accepted` the accepted host keys that are not written to a file. Pass both
    again to avoid the same questions.
    Raises SshConfigError, UnreachableError, HostKeyUnknownError, HostKeyChangedError or AuthenticationError.
    """
    accepted = AcceptedKeys() if accepted is None else accepted
    banners = []
    asks_nobody = True
    with ExitStack() as opened:
        before: _Hop | None = None
        for settings in jump_route(profile):
            with Login(settings, prompter, {} if unlocked is None else unlocked) as login:
                transport = _log_in(login, before, accepted, opened)
            banners.append(login.banner.decode(errors="replace"))
            asks_nobody &= login.asks_nobody
            before = transport, settings
        banner = "\n".join(banner for banner in banners if banner)
        closing = opened.pop_all()
    return Connection(transport, profile.host, banner, asks_nobody=asks_nobody, on_close=closing.close)


def _log_in(login: Login, before: _Hop | None, accepted: AcceptedKeys, opened: ExitStack) -> LoginTransport:
    """Make a transport and log in on it; `opened` closes it."""
    why = ""
    for _ in range(_MOST_CONNECTIONS):
        with ExitStack() as attempt:
            transport = _reach(login.settings, before, login.prompter, accepted, attempt)
            try:
                login.run(transport)
            except UntriedKeysError as error:
                why = str(error)
                continue
            opened.enter_context(attempt.pop_all())
            return transport
    raise login.failure(why)


def _reach(
    settings: HostSettings, before: _Hop | None, prompter: Prompter, accepted: AcceptedKeys, opened: ExitStack
) -> LoginTransport:
    """Make a transport with a known host key; `opened` closes it. Try again if a busy server refuses."""
    gives_up = time.monotonic() + REFUSED_S
    pause_s = _FIRST_PAUSE_S
    while True:
        with ExitStack() as attempt:
            transport, proxy = _open(settings, before, attempt)
            try:
                shake_hands(transport, settings, prompter, accepted)
            except SshRefusedError as refusal:
                if proxy is not None and (stderr_line := proxy.last_line):
                    raise _proxy_failed(settings, stderr_line) from refusal
                if time.monotonic() + pause_s > gives_up:
                    raise
            else:
                opened.enter_context(attempt.pop_all())
                return transport
        time.sleep(pause_s)
        pause_s *= 2


def _open(settings: HostSettings, before: _Hop | None, opened: ExitStack) -> tuple[LoginTransport, ProxyCommand | None]:
    """Make a transport that is not started, and its proxy command if it has one; `opened` closes them."""
    proxy = None
    sock: socket.socket | ForwardedSocket
    if before is not None:
        sock = open_through(*before, settings)
    elif settings.proxy_command is not None:
        proxy = ProxyCommand(settings.proxy_command)
        opened.callback(proxy.close)
        sock = proxy.socket
    else:
        sock = open_tcp(settings)
    opened.callback(sock.close)
    transport = LoginTransport(sock)
    opened.callback(transport.close)
    return transport, proxy


def _proxy_failed(settings: HostSettings, stderr_line: str) -> UnreachableError:
    return UnreachableError(
        f"Could not reach {settings.place}: its proxy command failed.",
        f"It printed: {stderr_line}",
        "Run the command in a terminal. If it asks questions, use ProxyJump instead: here it cannot ask them.",
    )
