"""`disk`: what this program has put on a cluster, and removing some of it after a yes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.disk import THING, disk, removal, removal_question
from llmb_tui.answers.table import Table
from llmb_tui.cli.output import print_status, show, write
from llmb_tui.cli.user import agree, require_changes, terminal_prompter, user_services
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files.housekeeping import InstallItem, chosen, install_items, measured, remove
from llmb_tui.cluster_files.prune import held_by_suites, loaded_by_suites
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services


def disk_verb(arguments: argparse.Namespace) -> int:
    """List what there is, with sizes; or remove what is named."""
    services = user_services(arguments)
    if arguments.remove:
        require_changes(services, arguments.cluster)
    elif arguments.yes:
        raise LlmbError("--yes goes with --remove.", "Without it nothing is removed.", exit_code=1)
    session = services.clusters.login_node(arguments.cluster)
    things, more = _listed(services, session)
    if arguments.remove:
        return _remove(services, arguments, measured(session, chosen(things, arguments.remove), print_status))
    write(
        disk(arguments.cluster, session.profile.install_dir, measured(session, things, print_status), more), arguments
    )
    return 0


def _listed(services: Services, session: Session) -> tuple[tuple[InstallItem, ...], int]:
    """As it is now, not measured."""
    session.connect(terminal_prompter())
    held, to_load = held_by_suites(services.suites, session.profile.name), loaded_by_suites(services.suites)
    return install_items(session, services.catalog, services.runs.all(), held, to_load)


def _remove(services: Services, arguments: argparse.Namespace, things: Sequence[InstallItem]) -> int:
    show(Grid("", Table.by(THING, things)))
    if not arguments.yes:
        question = f"{removal_question(arguments.cluster, things)} It cannot be undone."
        agree(question, "Nothing was removed.", "Add --yes.")
    session = services.clusters.login_node(arguments.cluster)
    # Measuring takes minutes, and the question stands for as long as nobody answers: something may need it by now.
    now, _ = _listed(services, session)
    outcome = remove(session, chosen(now, [one.path for one in things]), print_status)
    write(removal(arguments.cluster, outcome), arguments)
    return 2 if outcome.kept or outcome.left else 0
