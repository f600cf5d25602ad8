"""`connect`: from a profile to a live `Connection`: each host on the way, its host key, its login.

Paramiko's Transport is driven by hand: SSHClient.connect asks on the terminal, which belongs to the screen.
"""

from __future__ import annotations

import logging
import socket
import time
from contextlib import ExitStack

from llmb_tui.cluster.failures import Unreachable
from llmb_tui.cluster.login_profile import LoginProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.authentication import KeysLeft, Login
from llmb_tui.cluster.ssh.connection import Connection
from llmb_tui.cluster.ssh.handshake import ConnectionRefused, LoginTransport, shake_hands
from llmb_tui.cluster.ssh.host_keys import AcceptedKeys
from llmb_tui.cluster.ssh.keys import UnlockedKeys
from llmb_tui.cluster.ssh.openssh import HostSettings, jump_route
from llmb_tui.cluster.ssh.sockets import ProxyCommand, Through, open_tcp, open_through

# Without a handler of their own, paramiko's tracebacks would be printed over the screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

# A busy server refuses at random, and a moment later no longer.
_REFUSED_S = 8.0
_FIRST_PAUSE_S = 0.3
# With MaxAuthTries at sshd's default of 6 these offer more keys than anybody has.
_MOST_CONNECTIONS = 6

_Hop = tuple[LoginTransport, HostSettings]


def connect(
    profile: LoginProfile,
    prompter: Prompter,
    *,
    unlocked: UnlockedKeys | None = None,
    accepted: AcceptedKeys | None = None,
) -> Connection:
    """Connect, check the host keys and log in, on every host of the way; questions go to `prompter`.

    `unlocked` holds the keys whose passphrase was typed, `accepted` the host keys that go into no file; given again
    they spare the question.
    Raises BadSshConfig, Unreachable, HostKeyUnknown, HostKeyChanged or AuthenticationFailed.
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
    """A transport that is logged in; `opened` closes it."""
    why = ""
    for _ in range(_MOST_CONNECTIONS):
        with ExitStack() as attempt:
            transport = _reach(login.settings, before, login.prompter, accepted, attempt)
            try:
                login.run(transport)
            except KeysLeft as left:
                why = str(left)
                continue
            opened.enter_context(attempt.pop_all())
            return transport
    raise login.failure(why)


def _reach(
    settings: HostSettings, before: _Hop | None, prompter: Prompter, accepted: AcceptedKeys, opened: ExitStack
) -> LoginTransport:
    """A transport whose host key is known; `opened` closes it. Refusals of a busy server are waited for."""
    gives_up = time.monotonic() + _REFUSED_S
    pause_s = _FIRST_PAUSE_S
    while True:
        with ExitStack() as attempt:
            transport, proxy = _open(settings, before, attempt)
            try:
                shake_hands(transport, settings, prompter, accepted)
            except ConnectionRefused as refusal:
                if proxy is not None and (words := proxy.last_words):
                    raise _proxy_failed(settings, words) from refusal
                if time.monotonic() + pause_s > gives_up:
                    raise
            else:
                opened.enter_context(attempt.pop_all())
                return transport
        time.sleep(pause_s)
        pause_s *= 2


def _open(settings: HostSettings, before: _Hop | None, opened: ExitStack) -> tuple[LoginTransport, ProxyCommand | None]:
    """A transport that has not begun, and the proxy command that it goes through; `opened` closes them."""
    proxy = None
    sock: socket.socket | Through
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


def _proxy_failed(settings: HostSettings, words: str) -> Unreachable:
    return Unreachable(
        f"Could not reach {settings.place}: its proxy command failed.",
        f"It said: {words}",
        "Try the command in a terminal. One that asks questions cannot ask them here: use ProxyJump instead.",
    )
