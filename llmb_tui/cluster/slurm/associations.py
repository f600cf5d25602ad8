"""`Association`: which account a user may charge, where, and with which QOS; from `sacctmgr`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ASSOCIATIONS = 'limited 6 sacctmgr -nP show assoc user="$(id -un)" format=cluster,account,partition,qos,defaultqos'
"""For `run_batch`; answers about every cluster of the site's database."""
DEFAULT_ACCOUNT = 'limited 6 sacctmgr -nP show user "$(id -un)" format=defaultaccount'


@dataclass(frozen=True, slots=True)
class Association:
    """One line of the user's associations."""

    account: str
    partition: str
    """Empty: every partition."""
    qos: tuple[str, ...]
    default_qos: str
    """Empty where none is set."""


def parse_associations(text: str, cluster: str) -> list[Association]:
    """The user's associations on one cluster, or on all of them where its name is not known (empty)."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] and cluster in ("", cells[0]):
            _, account, partition, qos, default = cells
            found.append(Association(account, partition, tuple(filter(None, qos.split(","))), default))
    return found


def accounts_of(associations: Iterable[Association]) -> tuple[str, ...]:
    """Their accounts, each once."""
    return tuple(dict.fromkeys(association.account for association in associations))


def qos_of(associations: Iterable[Association], account: str = "") -> tuple[str, ...]:
    """The QOS that an account may use, or any account (empty); each once."""
    allowed = (a.qos for a in associations if account in ("", a.account))
    return tuple(dict.fromkeys(name for names in allowed for name in names))
