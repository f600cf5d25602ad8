"""`way_to`: every host on the way to a login node, as ProxyJump names them."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.cluster.failures import BadSshConfig
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.ssh.openssh import HostSettings, resolve, settings_of
from llmb_tui.text import clean

_MOST_HOPS = 8


def way_to(profile: ClusterProfile) -> tuple[HostSettings, ...]:
    """The hosts to log in to, one through the other, the login node last. Only the first may have a proxy command.

    As with `ssh`, a configured list of hops is taken as it stands, and the first of them has hops of its own.
    Raises BadSshConfig, also when the way leads in a circle.
    """
    way: tuple[HostSettings, ...] = (settings_of(profile),)
    while way[0].proxy_jump:
        hops = [resolve(hop, profile.ssh_config) for hop in way[0].proxy_jump]
        # The list itself is the way to all but the first of them.
        later = [replace(hop, proxy_jump=(), proxy_command=None) for hop in hops[1:]]
        way = (hops[0], *later, replace(way[0], proxy_jump=()), *way[1:])
        _refuse_circle(way)
    return (*(replace(hop, leads_to=profile.host) for hop in way[:-1]), way[-1])


def _refuse_circle(way: tuple[HostSettings, ...]) -> None:
    places = [(settings.user, settings.host.lower(), settings.port) for settings in way]
    if len(set(places)) < len(places) or len(places) > _MOST_HOPS:
        raise BadSshConfig(
            f"The way to {clean(way[-1].name)} leads in a circle: {' - '.join(settings.login for settings in way)}.",
            "ProxyJump in the OpenSSH configuration sends a host through itself.",
            "Give the jump host `ProxyJump none`, above the lines that set it for all hosts.",
        )
