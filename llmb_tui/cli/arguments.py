"""The verbs and the parser. `flags` has the flags of each verb, and is imported when a verb is parsed."""

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
_READ_ONLY = "refuse everything that would change a cluster"
_VERBS = (
    ("list", "planning", "list every published configuration"),
    ("plan", "planning", "show the plan of a run and its expected step time"),
    ("accuracy", "planning", "show the leave-one-out errors of the estimate on the published results"),
    ("demo", "demo", "try every step on an embedded, simulated cluster with Slurm or Run:ai"),
    ("clusters", "clusters", "list the saved clusters; `clusters add NAME --host …` saves another"),
    ("config", "config", "show the settings and their files, or check that every file can be read"),
    ("doctor", "clusters", "check a saved cluster, alone or for a selection"),
    ("install", "clusters", "install the software of a run on a cluster, or continue an install"),
    ("disk", "disk", "list the files of this program on a cluster, or remove some"),
    ("llmb", "llmb", "list the settings, workloads and runs of NVIDIA's llmb-run on a cluster"),
    ("secrets", "secrets", "list, test, store or remove the API keys on a cluster"),
    ("submit", "clusters", "render and submit a run, or submit a run that is not submitted yet"),
    ("suite", "suite", "plan, submit, watch, cancel or list suites of runs"),
    ("jobs", "runs", "list the runs, newest first"),
    ("note", "runs", "show or change the note and the tags of a run"),
    ("watch", "runs", "follow a run until it ends"),
    ("logs", "logs", "print the training log of a run, or a log file"),
    ("explain", "explain", "show why a log ended as it did: the causes, the most likely first"),
    ("cancel", "runs", "cancel a run's job"),
    ("suspend", "runs", "suspend a run's job and release its nodes, if the cluster allows it"),
    ("resume", "runs", "resume a suspended job"),
    ("results", "results", "show the results of runs, or of training logs here or on a cluster"),
    ("compare", "compare", "compare runs, or find the nodes on which runs were slow"),
    ("fetch", "fetch", "download the profiles, traces and logs of a run from its cluster"),
    ("report", "report", "write a report of runs with charts, as HTML or Markdown"),
    ("export", "evidence", "write an archive that proves runs to others; a possible secret stops the export"),
    ("verify", "evidence", "check an archive on any machine: checksums, numbers, verdicts, settings"),
)
"""Name, module of `llmb_tui.cli` with the function `<name>_verb`, and help text."""


class _Parser(argparse.ArgumentParser):
    """Parser whose exit code for wrong usage is 1: argparse's 2 means here that the cluster failed."""

    verb = ""
    """Verb whose flags are added before parsing: adding every verb's flags takes longer than the rest of `--help`."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the flags of the verb, and parse as argparse does."""
        if self.verb:
            from llmb_tui.cli.flags import add_flags

            verb, self.verb = self.verb, ""
            self.add_argument("--json", action="store_true", help="print JSON to stdout")
            _add_settings(self, "set_for_verb")
            self.add_argument("--read-only", action="store_true", default=argparse.SUPPRESS, help=_READ_ONLY)
            add_flags(self, verb)
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print as argparse does, or, if that fails, as verbs print their answers, with slower imports."""
        try:
            file.write(message)
            file.flush()
        except BrokenPipeError:
            raise
        except (AttributeError, OSError, ValueError):  # closed, full, or of an encoding without one of the characters
            from llmb_tui.cli.output import print_line

            print_line(message, end="")

    def error(self, message: str) -> NoReturn:
        """Raise the error for wrong usage."""
        raise LlmbError(message, fix=self.format_usage().strip(), exit_code=1)


def _later(module: str, function: str) -> Verb:
    """Verb whose module is imported when the verb runs."""

    def verb(arguments: argparse.Namespace) -> int:
        result: int = getattr(import_module(f"llmb_tui.cli.{module}"), function)(arguments)
        return result

    return verb


def _add_settings(parser: argparse.ArgumentParser, dest: str) -> None:
    """Add `--set`, with one list before the verb and one after it: in argparse a later list replaces an earlier one."""
    text = "setting for this call, such as verdict.threshold=0.97; may be repeated"
    parser.add_argument("--set", dest=dest, metavar="KEY=VALUE", action="append", default=[], help=text)


def parser() -> argparse.ArgumentParser:
    """Parser of the whole command line."""
    top = _Parser(
        prog="llmb-tui",
        description="Benchmark LLM pretraining on a GPU cluster: choose, predict, install, submit, watch, judge.",
        epilog="Without a verb the wizard opens. Exit codes: 0 done, 1 the request is wrong or impossible, "
        "2 the cluster or the machine failed, 3 a verdict of FAIL, 4 a run failed or was cancelled, 130 interrupted.",
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
