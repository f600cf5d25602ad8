"""The verbs. What flags each one has is in `flags`, which is imported with the verb that is named."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from llmb_tui import __version__
from llmb_tui.errors import LlmbError

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes a tenth of `--help`
    from typing import Any, NoReturn

Verb = Callable[[argparse.Namespace], int]
_READ_ONLY = "observer mode: refuse whatever would change a cluster"
_VERBS = (
    ("list", "planning", "every published configuration"),
    ("plan", "planning", "what will run, and how fast"),
    ("accuracy", "planning", "leave-one-out errors of the estimate on the published rows"),
    ("demo", "demo", "the whole journey on an embedded, simulated cluster, with Slurm or Run:ai"),
    ("clusters", "clusters", "saved clusters; `clusters add NAME --host …` saves one more"),
    ("config", "config", "where settings live, what is in force, and whether every file can be read"),
    ("doctor", "clusters", "preflight of a saved cluster, for a selection if one is given"),
    ("install", "clusters", "install what a run needs on a cluster, or go on installing"),
    ("disk", "disk", "what this program has put on a cluster, and removing it"),
    ("llmb", "llmb", "NVIDIA's own llmb-run on a cluster: its settings, workloads and runs"),
    ("secrets", "secrets", "keys on a cluster: which are there, and what they open"),
    ("submit", "clusters", "render and submit one run, or submit one that is not submitted yet"),
    ("suite", "suite", "many runs as one: plan, submit, watch, cancel or list"),
    ("jobs", "runs", "runs, newest first"),
    ("note", "runs", "a note and tags of your own on a run"),
    ("watch", "runs", "follow a run until it ends"),
    ("logs", "logs", "the training log of a run, or a log file"),
    ("explain", "explain", "why a log ended as it did: causes, the most likely first"),
    ("cancel", "runs", "cancel a run's job"),
    ("suspend", "runs", "let a run's job give its nodes back, where the cluster's users may"),
    ("resume", "runs", "let a suspended job begin again"),
    ("results", "results", "how runs came out, or logs of any training, here or on a cluster"),
    ("compare", "compare", "runs side by side, and which nodes they were slow with"),
    ("fetch", "fetch", "profiles, traces and logs that a run has left on its cluster"),
    ("report", "report", "runs as one readable file, HTML or Markdown, with charts"),
    ("export", "evidence", "one file that proves runs to somebody else; what looks like a secret stops it"),
    ("verify", "evidence", "check such a file, on any machine: sums, numbers, verdicts, settings"),
)
"""Name, module of `llmb_tui.cli` with the function `<name>_verb`, and what it does."""


class _Parser(argparse.ArgumentParser):
    """argparse leaves with 2 for wrong usage; here that is 1, because 2 means that the cluster failed."""

    verb = ""
    """Whose flags are added when something is parsed: all of them take longer than the rest of `--help`."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does."""
        if self.verb:
            from llmb_tui.cli.flags import add_flags

            verb, self.verb = self.verb, ""
            self.add_argument("--json", action="store_true", help="JSON on stdout")
            _add_settings(self, "set_for_verb")
            self.add_argument("--read-only", action="store_true", default=argparse.SUPPRESS, help=_READ_ONLY)
            add_flags(self, verb)
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        """As argparse does; where that fails as all answers are written, which takes a while to import."""
        try:
            file.write(message)
            file.flush()
        except BrokenPipeError:
            raise
        except (AttributeError, OSError, ValueError):  # closed, full, or without a character of it
            from llmb_tui.cli.output import print_line

            print_line(message, end="")

    def error(self, message: str) -> NoReturn:
        """A wrong request."""
        raise LlmbError(message, fix=self.format_usage().strip(), exit_code=1)


def _later(module: str, function: str) -> Verb:
    """A verb that is imported when it runs."""

    def verb(arguments: argparse.Namespace) -> int:
        result: int = getattr(import_module(f"llmb_tui.cli.{module}"), function)(arguments)
        return result

    return verb


def _add_settings(parser: argparse.ArgumentParser, dest: str) -> None:
    """Before the verb and after it are two lists, because argparse would let the second replace the first."""
    text = "a setting for this call, such as verdict.threshold=0.97; may be repeated"
    parser.add_argument("--set", dest=dest, metavar="KEY=VALUE", action="append", default=[], help=text)


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
    for name, module, text in _VERBS:
        sub = verbs.add_parser(name, help=text, description=text)
        sub.verb = name
        sub.set_defaults(verb=_later(module, f"{name}_verb"))
    return top
