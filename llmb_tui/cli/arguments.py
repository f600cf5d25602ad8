"""The verbs and their flags. Flags follow `llmb-run`, which their users know."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from llmb_tui import __version__

Verb = Callable[[argparse.Namespace], int]
SECRETS = ("ngc", "hugging-face")
OVERRIDES = ("tp", "pp", "cp", "ep", "vp", "mbs", "gbs", "seq_len", "layers")
_SWITCHES = ("strong_scaling", "profile", "nccl_trace", "save_checkpoint", "hub_tokenizer")
_NUMBERS = ("scale", *OVERRIDES, "steps", "profile_start", "profile_stop")
_TEXTS = ("workload", "size", "gpu", "dtype", "time_limit", "load_checkpoint")


class _Parser(argparse.ArgumentParser):
    """argparse leaves with 2 for wrong usage; here that is 1, because 2 means that the cluster failed."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


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
    return sub


def _add_selection(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-w", "--workload", metavar="W[@RELEASE]", help="workload; the newest release unless one is named")
    sub.add_argument("-s", "--size", help="model size, such as 15b")
    sub.add_argument("--gpu", metavar="TYPE", help="GPU type, such as h100")
    sub.add_argument("-d", "--dtype", help="precision: bf16 or fp8")
    sub.add_argument("--scale", metavar="GPUS", help="number of GPUs")
    sub.add_argument("--strong-scaling", action="store_true", help="keep the global batch size constant")
    for name in OVERRIDES:
        sub.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=argparse.SUPPRESS)
    sub.add_argument("--steps", metavar="N", help="training steps (the recipe's default otherwise)")
    sub.add_argument("--time-limit", metavar="HH:MM:SS", help="Slurm time limit (the recipe's default otherwise)")
    _add_options(sub)


def _add_procedure(sub: argparse.ArgumentParser) -> None:
    text = "direct: our script in the container (default); recipe: the published procedure, NVIDIA's own scripts"
    sub.add_argument("--procedure", choices=("direct", "recipe"), default="direct", help=text)


def _add_options(sub: argparse.ArgumentParser) -> None:
    """What a run can do beside the benchmark, where its recipe has it."""
    more = sub.add_argument_group("beside the benchmark, where the recipe has it")
    more.add_argument("-p", "--profile", action="store_true", help="profile some steps with Nsight Systems")
    more.add_argument("--profile-start", metavar="STEP", help="first profiled step (the recipe's default otherwise)")
    more.add_argument("--profile-stop", metavar="STEP", help="last profiled step (the recipe's default otherwise)")
    more.add_argument("--nccl-trace", action="store_true", help="let NCCL log its calls, over a few steps")
    more.add_argument("--save-checkpoint", action="store_true", help="save a checkpoint after the last step")
    more.add_argument("--load-checkpoint", metavar="PATH", help="load a checkpoint of the cluster, then take one step")
    more.add_argument("--hub-tokenizer", action="store_true", help="take the tokenizer from the model hub")


def selection_mapping(arguments: argparse.Namespace) -> dict[str, object]:
    """The selection flags that were given, by their long names with underscores."""
    mapping: dict[str, object] = {
        name: value for name in (*_TEXTS, *_NUMBERS) if (value := getattr(arguments, name)) is not None
    }
    for name in _NUMBERS:
        text = mapping.get(name)
        if isinstance(text, str) and text.lstrip("-").isdigit():
            mapping[name] = int(text)
    mapping |= {name: True for name in _SWITCHES if getattr(arguments, name)}
    return mapping


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(
        prog="llmb-tui",
        description="Benchmark LLM pretraining on a GPU cluster: choose, predict, install, submit, watch, judge.",
        epilog="Without a verb the wizard opens. Exit codes: 0 done, 1 the request is wrong or impossible, "
        "2 the cluster or the machine failed, 3 a verdict of FAIL, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"llmb-tui {__version__}")
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
    _add(verbs, "accuracy", "accuracy", "leave-one-out errors of the estimate on the published rows")


def _add_cluster_verbs(verbs: Any) -> None:
    sub = _add(verbs, "demo", "demo", "the whole journey on an embedded, simulated cluster")
    sub.add_argument("--headless", action="store_true", help="no screen: print each stage and the verdict")
    _add_selection(sub)
    _add(verbs, "clusters", "clusters", "saved clusters")
    sub = _add(verbs, "config", "config", "where settings live, what is in force, and whether every file can be read")
    sub.add_argument("action", choices=("path", "show", "validate"))
    sub = _add(verbs, "doctor", "doctor", "preflight of a saved cluster, for a selection if one is given")
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
    change.add_argument("--give", choices=SECRETS, help="put a key there; it is asked for, or read from stdin")
    change.add_argument("--forget", choices=SECRETS, help="remove a key from there and from this computer")
    sub.add_argument("--keep", action="store_true", help="with --give: keep it in this computer's keyring too")
    sub.add_argument("--from-keyring", action="store_true", help="with --give: take the one that the keyring keeps")
    _add_procedure(sub)
    _add_selection(sub)
    sub = _add(verbs, "submit", "clusters", "render and submit one run")
    _add_selection(sub)
    sub.add_argument("--cluster", metavar="C", required=True)
    _add_procedure(sub)
    text = "print the batch script, or the published procedure's command, and submit nothing"
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
