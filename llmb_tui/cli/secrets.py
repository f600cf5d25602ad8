"""`secrets`: the keys on a cluster. A key is asked for without echo or read from stdin, never an argument."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Fact, Grid, Section, known
from llmb_tui.answers.table import Column, Table
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import print_status, write
from llmb_tui.cli.planning import plan_of
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
        return "given by llmb-tui"
    return "one of your own" if state.own else "none"


_STATE = (
    Column("secret", "id"),
    Column("", "title"),
    Column("on the cluster", _place),
    Column("keyring", lambda state: "kept" if state.in_keyring else ""),
)


def secrets_verb(arguments: argparse.Namespace) -> int:
    """Say which keys are on a cluster; with a selection, what it needs and what they open. Give or forget one."""
    ask_for_selection(arguments)
    for flag in ("keep", "from_keyring"):
        if getattr(arguments, flag) and not arguments.give:
            fix = "Add --give with the kind of the key."
            raise LlmbError(f"--{flag.replace('_', '-')} goes with --give.", fix=fix, exit_code=1)
    services = user_services(arguments)
    if arguments.give or arguments.forget:
        require_changes(services, arguments.cluster)
    session = services.clusters.login_node(arguments.cluster)
    session.connect(terminal_prompter())
    if arguments.forget:
        print_status(forget_secret(session, arguments.forget))
    if arguments.give:
        value = None if arguments.from_keyring else _typed(arguments.give)
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
    answer = Fact("test", f"{test.words} {test.fix}".rstrip())
    facts = known(Fact("why", need.why), Fact("how long", need.how_long), answer)
    return Section(f"{need.title}: {'needed' if need.required else 'optional'}", (facts,))


def ask_for_key(services: Services, request: RunRequest, key: SecretId) -> None:
    """Ask at the terminal for a key that an install lacks, test it and put it on the cluster.

    Raises LlmbError (exit code 1) when none is given, or the servers do not take it.
    """
    session = services.clusters.login_node(request.profile)
    need = next(need for need in secrets_of(request) if need.id == key)
    print_status(f"{need.why}\nMake one at {need.where}. {need.how_long}")
    value = _typed(key)
    test = try_secret(session, need, secret_of(key, value), services.sources)
    print_status(test.words)
    if test.result in ("refused", "no access yet"):
        raise LlmbError("The key was not put on the cluster.", test.words, test.fix, exit_code=1)
    keep = confirm("Keep it in this computer's keyring too?")
    print_status(give_secret(session, key, value, keep=keep))


def _typed(secret_id: SecretId) -> str:
    typed = read_hidden(f"{TITLES[secret_id]}: ") if has_terminal() else read_line()
    if not typed.strip():
        raise LlmbError(f"No {TITLES[secret_id]} was given.", "", "Type it, or send it on stdin.", exit_code=1)
    return typed


def _needs(services: Services, arguments: argparse.Namespace) -> tuple[SecretNeed, ...]:
    if not selection_mapping(arguments):
        return ()
    return secrets_of(services.request(arguments.cluster, plan_of(services, arguments), arguments.procedure))
