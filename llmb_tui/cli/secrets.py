"""`secrets`: the API keys on a cluster. They are entered without echo or read from stdin, and are never arguments."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Fact, Grid, Section, known_facts
from llmb_tui.answers.table import Column, Table
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import print_status, write
from llmb_tui.cli.planning import plan_from_flags
from llmb_tui.cli.request import ask_for_selection
from llmb_tui.cli.user import (
    confirm,
    has_terminal,
    read_hidden,
    read_line,
    require_changes,
    terminal_prompter,
    user_services,
)
from llmb_tui.errors import LlmbError
from llmb_tui.launch.procedure_loader import secrets_of
from llmb_tui.launch.secrets import forget_secret, give_secret
from llmb_tui.preflight.access import SecretState, SecretTest, secret_states, try_secret
from llmb_tui.preflight.secret import TITLES, SecretId, SecretNeed, secret_of
from llmb_tui.request import RunRequest
from llmb_tui.services import Services


def _place(state: SecretState) -> str:
    if state.on_cluster:
        return "stored by llmb-tui"
    return "your own" if state.own else "none"


_STATE = (
    Column("secret", "id"),
    Column("", "title"),
    Column("on the cluster", _place),
    Column("keyring", lambda state: "kept" if state.in_keyring else ""),
)


def secrets_verb(arguments: argparse.Namespace) -> int:
    """List the API keys on a cluster, store or remove one; with a selection, also test the ones that it needs."""
    ask_for_selection(arguments)
    for flag in ("keep", "from_keyring"):
        if getattr(arguments, flag) and not arguments.give:
            fix = "Add --give with the kind of the API key."
            raise LlmbError(f"`secrets` takes --{flag.replace('_', '-')} only with --give.", fix=fix, exit_code=1)
    services = user_services(arguments)
    if arguments.give or arguments.forget:
        require_changes(services, arguments.cluster)
    session = services.clusters.login_node(arguments.cluster)
    session.connect(terminal_prompter())
    if arguments.forget:
        print_status(forget_secret(session, arguments.forget))
    if arguments.give:
        value = None if arguments.from_keyring else _read_key(arguments.give)
        print_status(give_secret(session, arguments.give, value, keep=arguments.keep))
    states = secret_states(session, keyring=True)
    needs = _needs(services, arguments)
    tests = [try_secret(session, need, None, services.sources) for need in needs]
    document = {
        "secrets": [asdict(state) for state in states],
        "needs": [asdict(need) for need in needs],
        "tests": [asdict(test) for test in tests],
    }
    grid = Grid("", Table.by(_STATE, states))
    write(Answer("API keys", lambda: (grid, *map(_section, needs, tests)), lambda: document), arguments)
    return 0


def _section(need: SecretNeed, test: SecretTest) -> Section:
    result = Fact("test", f"{test.words} {test.fix}".rstrip())
    facts = known_facts(Fact("why", need.why), Fact("how long", need.how_long), result)
    return Section(f"{need.title}: {'needed' if need.required else 'optional'}", (facts,))


def ask_for_key(services: Services, request: RunRequest, key: SecretId) -> None:
    """Ask at the terminal for an API key that an install lacks, test it, and store it on the cluster.

    Raises LlmbError (exit code 1) if the user enters none, or a server rejects it.
    """
    session = services.clusters.login_node(request.profile)
    need = next(need for need in secrets_of(request) if need.id == key)
    print_status(f"{need.why}\nCreate one at {need.where}. {need.how_long}")
    value = _read_key(key)
    test = try_secret(session, need, secret_of(key, value), services.sources)
    print_status(test.words)
    if test.result in ("refused", "no access yet"):
        raise LlmbError("The API key was not stored on the cluster.", test.words, test.fix, exit_code=1)
    keep = confirm("Also store it in this computer's keyring?")
    print_status(give_secret(session, key, value, keep=keep))


def _read_key(secret_id: SecretId) -> str:
    value = read_hidden(f"{TITLES[secret_id]}: ") if has_terminal() else read_line()
    if not value.strip():
        raise LlmbError(f"No {TITLES[secret_id]} was entered.", "", "Type it, or send it on stdin.", exit_code=1)
    return value


def _needs(services: Services, arguments: argparse.Namespace) -> tuple[SecretNeed, ...]:
    if not selection_mapping(arguments):
        return ()
    return secrets_of(services.request(arguments.cluster, plan_from_flags(services, arguments), arguments.procedure))
