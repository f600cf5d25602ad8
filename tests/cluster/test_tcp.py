"""Hosts whose name resolves to several addresses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import pytest

from llmb_tui.cluster import tcp
from llmb_tui.cluster.failures import UnreachableError
from llmb_tui.cluster.runai.https import HttpsServer, trusting
from llmb_tui.cluster.ssh.openssh import HostSettings
from llmb_tui.cluster.ssh.sockets import open_tcp

SILENT = ("192.0.2.1", 22)


class Clock:
    """Clock that advances by this thread's waits for a silent address; threads of earlier tests may try it, too."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock, connect, own = Clock(), socket.socket.connect, threading.get_ident()

    def connect_or_wait(sock: socket.socket, address: tuple[str, int]) -> None:
        if address != SILENT:
            return connect(sock, address)
        if threading.get_ident() == own:
            clock.now_s += sock.gettimeout() or 0.0
        raise TimeoutError

    monkeypatch.setattr(tcp, "time", clock)
    monkeypatch.setattr(socket.socket, "connect", connect_or_wait)
    return clock


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: answer)


def by_ssh() -> None:
    open_tcp(HostSettings(name="eos", host="eos", user="alice", connect_deadline_s=10.0))


def by_https() -> None:
    HttpsServer("https://runai.example", trusting()).reach(time.monotonic() + 10.0)


@pytest.mark.parametrize("way", [by_ssh, by_https])
def test_several_silent_addresses_share_one_timeout(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, way: Callable[[], None]
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    resolve_to(monkeypatch, *[SILENT] * 4)
    with pytest.raises(UnreachableError):
        way()
    assert 0.0 < clock.now_s < 10.001


def test_a_silent_address_leaves_time_for_the_next_address(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = listening.getsockname()
        resolve_to(monkeypatch, SILENT, there, SILENT)
        with tcp.connect_tcp("eos", 22, 9.0) as sock:
            assert sock.getpeername() == there
            assert sock.gettimeout() == 3.0
    assert clock.now_s == 3.0
