"""The verbs and their flags. Flags follow `llmb-run`, which their users know."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from llmb_tui import __version__
from llmb_tui.cli.output import say
from llmb_tui.cluster.profile_fields import BESIDE
from llmb_tui.cluster.profile_fields import FIELDS as FORM
from llmb_tui.errors import Trouble
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, FIELDS, NEW_RUN_PROCEDURES, OLD_PROCEDURES, OPTIONS, Field

Verb = Callable[[argparse.Namespace], int]
_READ_ONLY = "observer mode: refuse whatever would change a cluster"
_NUMBER = re.compile(r"[0-9]{1,18}")
SECRETS = ("ngc", "hugging-face")
PROFILE_FLAGS = tuple(field for field in (*FORM, *BESIDE) if field.name not in ("name", "read_only"))
"""Fields of a cluster's profile that `clusters add` takes; --read-only says something else, of every verb."""


class _Parser(argparse.ArgumentParser):
    """argparse leaves with 2 for wrong usage; here that is 1, because 2 means that the cluster failed."""

    def error(self, message: str) -> NoReturn:
        raise Trouble(message, fix=self.format_usage().strip(), exit_code=1)


def _count(text: str) -> int:
    try:
        return number(text, "N")
    except Trouble as trouble:
        raise argparse.ArgumentTypeError(trouble.what) from trouble


def number(text: str, name: str) -> int:
    """A number from 1 on. Raises Trouble (exit code 1)."""
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise Trouble(f"{name} cannot be {text[:40]!r}.", fix="It is a number from 1 on.", exit_code=1)
    return int(text)


def _procedure(text: str) -> str:
    """The name of today; an older one is taken, and said to be old."""
    name = OLD_PROCEDURES.get(text, text)
    if name != text:
        say(f"llmb-tui: --procedure {text} is called {name} now.")
    return name


def _secret(text: str) -> str:
    """The name of a key. What is none may be a key, which is not repeated."""
    if text not in SECRETS:
        raise argparse.ArgumentTypeError(
            f"name one of {', '.join(SECRETS)}; the key itself is asked for, or read from stdin"
        )
    return text


def _later(module: str, function: str) -> Verb:
    """A verb that is imported when it runs."""

    def verb(arguments: argparse.Namespace) -> int:
        result: int = getattr(import_module(f"llmb_tui.cli.{module}"), function)(arguments)
        return result

    return verb


def _add(verbs: Any, name: str, module: str, help_text: str) -> argparse.ArgumentParser:
    """Add a verb; `llmb_tui.cli.<module>.<name>_verb` runs it."""
    sub: argparse.ArgumentParser = verbs.add_parser(name, help=help_text, description=help_text)
    sub.set_defaults(verb=_later(module, f"{name}_verb"))
    sub.add_argument("--json", action="store_true", help="one JSON document on stdout")
    _add_settings(sub, "set_for_verb")
    sub.add_argument("--read-only", action="store_true", default=argparse.SUPPRESS, help=_READ_ONLY)
    return sub


def _add_settings(parser: argparse.ArgumentParser, dest: str) -> None:
    """Before the verb and after it are two lists, because argparse would let the second replace the first."""
    text = "a setting for this call, such as verdict.threshold=0.97; may be repeated"
    parser.add_argument("--set", dest=dest, metavar="KEY=VALUE", action="append", default=[], help=text)


def _add_selection(sub: argparse.ArgumentParser) -> None:
    """A flag for everything that can be set; what a run can do beside the benchmark is in a group of its own."""
    more = sub.add_argument_group("beside the benchmark, where the recipe has it")
    for field in filter(lambda field: field.has_flag, FIELDS.values()):
        target = more if field in OPTIONS else sub
        names = [name for name in (field.short, field.flag) if name]
        text = field.help or argparse.SUPPRESS
        if field.kind == "switch":
            target.add_argument(*names, action="store_true", help=text)
        else:
            target.add_argument(*names, metavar=field.metavar or None, help=text)


def _add_procedure(sub: argparse.ArgumentParser) -> None:
    text = "direct: our script in the container (default); upstream: NVIDIA's own scripts"
    names = NEW_RUN_PROCEDURES
    sub.add_argument("--procedure", choices=names, type=_procedure, default=DEFAULT_PROCEDURE, help=text)


def selection_mapping(arguments: argparse.Namespace) -> dict[str, object]:
    """The selection flags that were given, by their long names with underscores."""
    values = {field: getattr(arguments, field.name) for field in FIELDS.values() if field.has_flag}
    return {field.name: _typed(field, value) for field, value in values.items() if value not in (None, False)}


def _typed(field: Field, text: str) -> object:
    """The number where one is meant; what is none stays, and is refused by who reads the selection."""
    return int(text) if field.kind == "number" and _NUMBER.fullmatch(text.removeprefix("-")) else text


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(
        prog="llmb-tui",
        description="Benchmark LLM pretraining on a GPU cluster: choose, predict, install, submit, watch, judge.",
        epilog="Without a verb the wizard opens. Exit codes: 0 done, 1 the request is wrong or impossible, "
        "2 the cluster or the machine failed, 3 a verdict of FAIL, 4 a run did not end well, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"llmb-tui {__version__}")
    _add_settings(top, "set")
    top.add_argument("--read-only", action="store_true", help=_READ_ONLY)
    top.set_defaults(verb=_later("screen", "wizard_verb"))
    verbs = top.add_subparsers(title="verbs", metavar="VERB", parser_class=_Parser)
    _add_planning_verbs(verbs)
    _add_cluster_verbs(verbs)
    _add_run_verbs(verbs)
    return top


def _add_planning_verbs(verbs: Any) -> None:
    sub = _add(verbs, "list", "planning", "every published configuration")
    sub.add_argument("-w", "--workload", metavar="W[@RELEASE]")
    sub = _add(verbs, "plan", "planning", "what will run, and how fast")
    _add_selection(sub)
    sub.add_argument(
        "--from", dest="source", metavar="FILE", help="many plans: JSON lines in (- for stdin), JSON lines out"
    )
    text = "the N fastest layouts that are valid for it, by the estimate (20 without a number)"
    sub.add_argument("--layouts", metavar="N", nargs="?", type=_count, const=20, help=text)
    sub.add_argument("--cluster", metavar="C", help="say what finished runs on this cluster let one expect, too")
    _add(verbs, "accuracy", "planning", "leave-one-out errors of the estimate on the published rows")


def _add_cluster_verbs(verbs: Any) -> None:
    sub = _add(verbs, "demo", "demo", "the whole journey on an embedded, simulated cluster")
    sub.add_argument("--headless", action="store_true", help="no screen: print each stage and the verdict")
    _add_selection(sub)
    sub = _add(verbs, "clusters", "clusters", "saved clusters; `clusters add NAME --host …` saves one more")
    sub.add_argument("action", nargs="?", choices=("add",), help="save a cluster")
    sub.add_argument("name", nargs="?", metavar="NAME")
    for field in PROFILE_FLAGS:
        text = ": ".join(filter(None, (field.title, field.hint)))
        sub.add_argument(field.flag, metavar="TEXT", help=f"{text}{' (needed)' * field.needed}")
    sub = _add(verbs, "config", "config", "where settings live, what is in force, and whether every file can be read")
    sub.add_argument("action", choices=("path", "show", "validate"))
    sub = _add(verbs, "doctor", "clusters", "preflight of a saved cluster, for a selection if one is given")
    sub.add_argument("cluster", metavar="CLUSTER")
    _add_procedure(sub)
    _add_selection(sub)
    sub = _add(verbs, "install", "clusters", "install what a run needs on a cluster, or go on installing")
    sub.add_argument("cluster", metavar="CLUSTER")
    _add_procedure(sub)
    _add_selection(sub)
    sub = _add(verbs, "llmb", "llmb", "NVIDIA's own llmb-run on a cluster: its settings, workloads and runs")
    sub.add_argument("cluster", metavar="CLUSTER")
    sub.add_argument("--open", metavar="JOB", help="remember this run of it, so that it is watched as ours are")
    sub = _add(verbs, "secrets", "secrets", "keys on a cluster: which are there, and what they open")
    sub.add_argument("cluster", metavar="CLUSTER")
    change = sub.add_mutually_exclusive_group()
    kinds = f"{{{','.join(SECRETS)}}}"
    change.add_argument(
        "--give", type=_secret, metavar=kinds, help="put a key there; it is asked for, or read from stdin"
    )
    change.add_argument("--forget", type=_secret, metavar=kinds, help="remove a key from there and from this computer")
    sub.add_argument("--keep", action="store_true", help="with --give: keep it in this computer's keyring too")
    sub.add_argument("--from-keyring", action="store_true", help="with --give: take the one that the keyring keeps")
    _add_procedure(sub)
    _add_selection(sub)
    sub = _add(verbs, "submit", "clusters", "render and submit one run, or send one that was prepared")
    _add_selection(sub)
    sub.add_argument("--cluster", metavar="C")
    _add_procedure(sub)
    text = "send a run of which nothing was sent, as it was agreed to; it goes with no selection"
    sub.add_argument("--resume", dest="run", metavar="RUN", help=text)
    text = "print the batch script, or the command of NVIDIA's own scripts, and submit nothing"
    sub.add_argument("--dry-run", action="store_true", help=text)
    sub.add_argument("--yes", action="store_true", help="submit without asking")


def _add_run_verbs(verbs: Any) -> None:
    _add(verbs, "jobs", "runs", "runs, newest first")
    sub = _add(verbs, "watch", "runs", "follow a run until it ends")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--once", action="store_true", help="say how it stands and leave")
    sub = _add(verbs, "logs", "runs", "the training log of a run, or a log file")
    sub.add_argument("run", metavar="RUN|FILE")
    sub.add_argument("-f", "--follow", action="store_true")
    sub = _add(verbs, "cancel", "runs", "cancel a run's job")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--yes", action="store_true", help="cancel without asking")
    sub = _add(verbs, "results", "runs", "verdicts of runs, or of log files")
    sub.add_argument("runs", metavar="RUN|PATH", nargs="+")
