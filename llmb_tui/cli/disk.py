"""`disk`: what this program has put on a cluster, and removing some of it after a yes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from llmb_tui.cli.output import print_json, print_line, print_table, say
from llmb_tui.cli.user import agree, require_changes, terminal_prompter, user_services
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files.housekeeping import KINDS, Belonging, belongings, chosen, measured, remove, total_size
from llmb_tui.cluster_files.prune import held_by_suites, loaded_by_suites
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.text import plural
from llmb_tui.services import Services

_HEADINGS = ("size", "what", "run", "name", "stays because")


def disk_verb(arguments: argparse.Namespace) -> int:
    """List what there is, with sizes; or remove what is named."""
    services = user_services(arguments)
    if arguments.remove:
        require_changes(services, arguments.cluster)
    elif arguments.yes:
        raise Trouble("--yes goes with --remove.", "Without it nothing is removed.", exit_code=1)
    session = services.clusters.login_node(arguments.cluster)
    things, more = _listed(services, session)
    if arguments.remove:
        return _remove(services, arguments, measured(session, chosen(things, arguments.remove), say))
    things = measured(session, things, say)
    directory = session.profile.install_dir
    if arguments.json:
        documents = [_document(one) for one in things]
        print_json({"cluster": arguments.cluster, "directory": directory, "things": documents, "more": more})
        return 0
    print_table(_HEADINGS, map(_row, sorted(things, key=lambda one: one.size or 0, reverse=True)))
    say(f"{plural(len(things), 'thing')} below {directory}, {total_size(things)}.")
    if more:
        say(f"{plural(more, 'thing')} more {'is' if more == 1 else 'are'} not listed: of other names, or too many.")
    return 0


def _listed(services: Services, session: Session) -> tuple[tuple[Belonging, ...], int]:
    """As it is now, not measured."""
    session.connect(terminal_prompter())
    held, to_load = held_by_suites(services.suites, session.profile.name), loaded_by_suites(services.suites)
    return belongings(session, services.catalog, services.runs.all(), held, to_load)


def _remove(services: Services, arguments: argparse.Namespace, things: Sequence[Belonging]) -> int:
    for one in things:
        say(f"  {one.path}  {KINDS[one.kind]}  {_size(one)}")
    if not arguments.yes:
        what = f"{plural(len(things), 'thing')}, {total_size(things)}, from {arguments.cluster}"
        agree(f"Remove {what}? It cannot be undone.", "Nothing was removed.", "Add --yes.")
    session = services.clusters.login_node(arguments.cluster)
    # Measuring takes minutes, and the question stands for as long as nobody answers: something may need it by now.
    now, _ = _listed(services, session)
    removal = remove(session, chosen(now, [one.path for one in things]), say)
    if arguments.json:
        outcome = {"removed": list(removal.removed), "kept": dict(removal.kept), "left": removal.left or None}
        print_json({"cluster": arguments.cluster, **outcome})
    for path in () if arguments.json else removal.removed:
        print_line(f"removed {path}")
    for path, why in removal.kept.items():
        say(f"{path} was not removed. {why}")
    if removal.left:
        say(f"{removal.left} Continue with `llmb-tui disk {arguments.cluster} --remove trash`.")
    return 2 if removal.kept or removal.left else 0


def _row(one: Belonging) -> tuple[str, ...]:
    return _size(one), KINDS[one.kind], " ".join(one.run_ids) or "–", one.path, one.kept


def _document(one: Belonging) -> dict[str, object]:
    runs = list(one.run_ids)
    return {"name": one.path, "kind": one.kind, "bytes": one.size, "runs": runs, "kept": one.kept or None}


def _size(one: Belonging) -> str:
    return "?" if one.size is None else byte_size(one.size)
