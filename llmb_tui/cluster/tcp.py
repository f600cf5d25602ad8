"""A TCP connection to a host, however many addresses its name has."""

from __future__ import annotations

import socket
import time


def connect_tcp(host: str, port: int, within_s: float) -> socket.socket:
    """A connection to the first of its addresses that answers; each has a fair share of the time that is left.

    `socket.create_connection`, whose errors it raises, gives each of them all of it.
    """
    ends = time.monotonic() + within_s
    addresses = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    failure = OSError("the name has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:  # a family of addresses that this machine does not have
            failure = error
            continue
        try:
            sock.settimeout(max(0.001, (ends - time.monotonic()) / (len(addresses) - number)))
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure
