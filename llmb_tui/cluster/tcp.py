"""TCP connections to a host, whose name may have several addresses."""

from __future__ import annotations

import socket
import time


def connect_tcp(host: str, port: int, within_s: float) -> socket.socket:
    """Connect to the first address of a host that answers, in at most `within_s` seconds.

    Each address gets an equal share of the remaining time; `socket.create_connection` would give each the whole time.
    Raises the errors of `socket.create_connection`.
    """
    ends = time.monotonic() + within_s
    addresses = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    failure = OSError("the name has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:  # this machine does not support the address family
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
