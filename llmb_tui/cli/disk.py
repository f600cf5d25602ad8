"""`disk`: the program's files on a cluster, and their removal after a confirmation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.disk import ITEM_COLUMNS, disk, removal, removal_question
from llmb_tui.answers.table import Table
from llmb_tui.cli.output import print_block, print_status, write
from llmb_tui.cli.user import require_changes, require_confirmation, terminal_prompter, user_services
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files.housekeeping import InstallItem, install_items, measure_items, remove, select_items
from llmb_tui.cluster_files.prune import held_by_suites, loaded_by_suites
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services


def disk_verb(arguments: argparse.Namespace) -> int:
    """List the items with their sizes, or remove the named ones."""
    services = user_services(arguments)
    if arguments.remove:
        require_changes(services, arguments.cluster)
    elif arguments.yes:
        raise LlmbError("`disk` takes --yes only with --remove.", "Without it nothing is removed.", exit_code=1)
    session = services.clusters.login_node(arguments.cluster)
    items, more = _list_items(services, session)
    if arguments.remove:
        return _remove(services, arguments, measure_items(session, select_items(items, arguments.remove), print_status))
    write(
        disk(arguments.cluster, session.profile.install_dir, measure_items(session, items, print_status), more),
        arguments,
    )
    return 0


def _list_items(services: Services, session: Session) -> tuple[tuple[InstallItem, ...], int]:
    """Current items without their sizes, and the number of further ones."""
    session.connect(terminal_prompter())
    held, to_load = held_by_suites(services.suites, session.profile.name), loaded_by_suites(services.suites)
    return install_items(session, services.catalog, services.runs.all(), held, to_load)


def _remove(services: Services, arguments: argparse.Namespace, items: Sequence[InstallItem]) -> int:
    print_block(Grid("", Table.by(ITEM_COLUMNS, items)))
    if not arguments.yes:
        question = f"{removal_question(arguments.cluster, items)} This cannot be undone."
        require_confirmation(question, "Nothing was removed.", "Add --yes to remove without a confirmation.")
    session = services.clusters.login_node(arguments.cluster)
    # Measuring and the user's answer take minutes, in which a run may have begun to use one of the items.
    current, _ = _list_items(services, session)
    outcome = remove(session, select_items(current, [item.path for item in items]), print_status)
    write(removal(arguments.cluster, outcome), arguments)
    return 2 if outcome.kept or outcome.left else 0
