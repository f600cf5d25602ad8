"""`with_access`: a preflight, and what the reached servers say to the keys that lie on the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llmb_tui.cluster.preflight.needs import Sources
from llmb_tui.cluster.preflight.network import HUB, REGISTRY, servers_in_use
from llmb_tui.cluster.preflight.report import Preflight
from llmb_tui.cluster.session import Session
from llmb_tui.launch.secret import SecretId, SecretNeed
from llmb_tui.launch.secrets import secret_checks

_SERVERS: dict[SecretId, str] = {"ngc": REGISTRY, "hugging-face": HUB}


def with_access(
    session: Session,
    report: Preflight,
    secrets: Sequence[SecretNeed],
    sources: Sources,
    on_progress: Callable[[Preflight], None] | None = None,
) -> Preflight:
    """The report with a check for each key of a server in use. Asks nothing where none was reached.

    Raises what `Session.run` raises.
    """
    servers = servers_in_use(report)
    asked = [need for need in secrets if _SERVERS[need.id] in servers]
    if not asked:
        return report
    report = Preflight((*report.checks, *secret_checks(session, asked, sources)))
    if on_progress is not None:
        on_progress(report)
    return report
