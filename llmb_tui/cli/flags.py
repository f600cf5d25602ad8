"""The flags of each verb, with their help texts. Flags have the names of `llmb-run`, which users know."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from llmb_tui.cli.output import print_status
from llmb_tui.errors import LlmbError
from llmb_tui.plan.selection import (
    DEFAULT_PROCEDURE,
    FIELDS,
    LAYOUT,
    OLD_PROCEDURES,
    OPTIONS,
    VARIANTS,
    Field,
    is_given,
)

if TYPE_CHECKING:
    from llmb_tui.cluster.kind import ClusterKind
    from llmb_tui.cluster.profile_fields import ProfileField

_NUMBER = re.compile(r"[0-9]{1,18}")
SECRETS = ("ngc", "hugging-face")
_NO_FLAG = ("name", "read_only")  # every verb has --read-only, with another meaning
_WITH_FLAG = (*(field for field in FIELDS.values() if field.has_flag), *VARIANTS)
_PURPOSES = ("repeats", "changes", "clusters", "layouts", "precisions", "scales", "releases", "gpus")


def _count(text: str) -> int:
    try:
        return number(text, "N")
    except LlmbError as error:
        raise argparse.ArgumentTypeError(error.what) from error


def number(text: str, name: str) -> int:
    """Parse a whole number of at least 1. Raises LlmbError (exit code 1)."""
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise LlmbError(f"{name} cannot be {text[:40]!r}.", fix="Use a whole number of at least 1.", exit_code=1)
    return int(text)


def _procedures() -> dict[str, str]:
    """Values of `--procedure`, each with its help text."""
    from llmb_tui.launch.procedures import PROCEDURES  # slow, and `plan` has no such flag

    return {name: facts.flag_help for name, facts in PROCEDURES.items() if facts.flag_help}


def _procedure(text: str) -> str:
    """Current name of a launch method. Prints a line for an older name that is still accepted."""
    name = OLD_PROCEDURES.get(text, text)
    if name != text and name in _procedures():
        print_status(f"llmb-tui: --procedure {text} is now called {name}.")
    return name


def _secret(text: str) -> str:
    """Kind of an API key. The error does not repeat other text, which may be the API key itself."""
    if text not in SECRETS:
        raise argparse.ArgumentTypeError(
            f"use one of {', '.join(SECRETS)}; the program asks for the API key, or reads it from stdin"
        )
    return text


def _add_selection(sub: argparse.ArgumentParser) -> None:
    """Add a flag for each setting of a selection, with a group for the layout and one for further options of a run."""
    layout = sub.add_argument_group("layout (default: the recipe's)")
    more = sub.add_argument_group("further options, if the recipe has them")
    for field in _WITH_FLAG:
        target = more if field in OPTIONS else layout if field in LAYOUT else sub
        names = [name for name in (field.short, field.flag) if name]
        if field.kind == "switch":
            target.add_argument(*names, action="store_true", help=field.help)
        else:
            target.add_argument(*names, metavar=field.metavar or None, help=field.help)


def _add_form(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--format", choices=("table", "csv", "markdown"), default="table", help="format of the answer")


def _add_procedure(sub: argparse.ArgumentParser) -> None:
    names = _procedures()
    words = (f"{name}: {text}{' (default)' if name == DEFAULT_PROCEDURE else ''}" for name, text in names.items())
    text = "; ".join(words)
    sub.add_argument("--procedure", choices=names, type=_procedure, default=DEFAULT_PROCEDURE, help=text)


def selection_mapping(arguments: argparse.Namespace) -> dict[str, object]:
    """Values of the given selection flags, by their long names with underscores."""
    values = {field: getattr(arguments, field.name) for field in _WITH_FLAG}
    return {field.name: _typed(field, value) for field, value in values.items() if is_given(value)}


def _typed(field: Field, text: str) -> object:
    """Value of a flag, as a number if the field is numeric. Other text stays, and `read_request` rejects it."""
    return int(text) if field.kind == "number" and _NUMBER.fullmatch(text.removeprefix("-")) else text


def _list(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-w", "--workload", metavar="W[@RELEASE]", help="only this workload")


def _plan(sub: argparse.ArgumentParser) -> None:
    _add_selection(sub)
    text = "plan the selection on each JSON line of FILE (- for stdin), and print JSON lines"
    sub.add_argument("--from", dest="source", metavar="FILE", help=text)
    text = "list the N layouts (20 without N) with the shortest estimated step times, always with the published layout"
    sub.add_argument("--layouts", metavar="N", nargs="?", type=_count, const=20, help=text)
    sub.add_argument("--cluster", metavar="C", help="also estimate from the finished runs on this cluster")


def _demo(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--headless", action="store_true", help="print each stage and the verdict, without a screen")
    sub.add_argument("--cluster", choices=("slurm", "runai"), default="slurm", help="kind of cluster (default: slurm)")
    _add_selection(sub)


def _clusters(sub: argparse.ArgumentParser) -> None:
    from llmb_tui.cluster.kinds import KINDS, UNNAMED  # slow, and `plan` needs no cluster

    sub.add_argument("action", nargs="?", choices=("add",), help="save a cluster")
    sub.add_argument("name", nargs="?", metavar="NAME")
    sub.add_argument("--kind", choices=tuple(KINDS), default=UNNAMED, help=f"kind of cluster (default: {UNNAMED})")
    known: set[str] = set()
    for kind in KINDS.values():
        group = sub.add_argument_group(f"for {kind.words.scheduler}")
        for field in profile_flags(kind):
            if field.name not in known:
                _add_field(group, field)
                known.add(field.name)


def profile_flags(kind: ClusterKind[Any]) -> tuple[ProfileField, ...]:
    """Fields of a kind's profile that have a flag of `clusters add`."""
    return tuple(field for field in kind.fields if field.name not in _NO_FLAG)


def _add_field(group: argparse._ArgumentGroup, field: ProfileField) -> None:
    hint = f" ({field.hint})" if field.hint else ""
    group.add_argument(field.flag, metavar="TEXT", help=f"{field.title}{hint}{', required' * field.needed}")


def _config(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=("path", "show", "validate"))


def _on_cluster(sub: argparse.ArgumentParser) -> None:
    _add_procedure(sub)
    _add_selection(sub)


def _llmb(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--open", metavar="JOB", help="add this job of llmb-run to the runs here, for `watch`")


def _secrets(sub: argparse.ArgumentParser) -> None:
    change = sub.add_mutually_exclusive_group()
    kinds = f"{{{','.join(SECRETS)}}}"
    text = "store an API key on the cluster; asks for it or reads it from stdin"
    change.add_argument("--give", type=_secret, metavar=kinds, help=text)
    text = "remove an API key from the cluster and from this computer"
    change.add_argument("--forget", type=_secret, metavar=kinds, help=text)
    sub.add_argument("--keep", action="store_true", help="with --give: also store it in this computer's keyring")
    sub.add_argument("--from-keyring", action="store_true", help="with --give: take it from this computer's keyring")
    _add_procedure(sub)
    _add_selection(sub)


def _submit(sub: argparse.ArgumentParser) -> None:
    _add_selection(sub)
    sub.add_argument("--cluster", metavar="C", help="cluster to submit to; `local` uses this machine as the login node")
    _add_procedure(sub)
    sub.set_defaults(procedure=None)  # with --again it is the run's
    text = "submit the configuration of RUN again, changed by other flags of the selection, cluster or launch method"
    sub.add_argument("--again", metavar="RUN", help=text)
    text = "submit a run that is not submitted yet, as it was confirmed; takes no selection"
    sub.add_argument("--resume", dest="run", metavar="RUN", help=text)
    text = "print the batch script, or the command of NVIDIA's scripts, and submit nothing"
    sub.add_argument("--dry-run", action="store_true", help=text)
    sub.add_argument("--yes", action="store_true", help="submit without a confirmation")


def _disk(sub: argparse.ArgumentParser) -> None:
    text = "remove listed names, runs by id, or `trash` permanently after a confirmation; items in use are kept"
    sub.add_argument("--remove", metavar="NAME", nargs="+", default=[], help=text)
    sub.add_argument("--yes", action="store_true", help="with --remove: remove without a confirmation")


def _jobs(sub: argparse.ArgumentParser) -> None:
    text = "list this machine's log copies of finished runs, and remove them after a confirmation; results are kept"
    sub.add_argument("--prune", action="store_true", help=text)
    text = "with --prune: only logs that did not grow in the last DAYS days"
    sub.add_argument("--older-than", metavar="DAYS", type=_count, help=text)
    sub.add_argument("--yes", action="store_true", help="with --prune: remove without a confirmation")


def _note(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("text", metavar="TEXT", nargs="?", help="text of the note; an empty text removes the note")
    text = "add a tag, which `jobs` and the list of runs show; may be repeated"
    sub.add_argument("--tag", metavar="T", action="append", default=[], help=text)
    sub.add_argument("--untag", metavar="T", action="append", default=[], help="remove a tag; may be repeated")


def _watch(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--once", action="store_true", help="print the current state and exit")
    _add_strict(sub)


def _add_strict(sub: argparse.ArgumentParser, where: str = "") -> None:
    text = f"{where}exit with 3 for every result other than PASS, also without a verdict"
    sub.add_argument("--strict", action="store_true", help=text)


def _logs(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", metavar="RUN|FILE")
    text = "print new lines as well: of a run until its job ends, of a file until ctrl+c"
    sub.add_argument("-f", "--follow", action="store_true", help=text)


def _explain(sub: argparse.ArgumentParser) -> None:
    from llmb_tui.diagnosis.rule import LOG_STAGES

    sub.add_argument("log", metavar="FILE|RUN|-", help="a log file, a run of this machine, or - for stdin")
    text = "what wrote the log: decides which failure rules apply (default: training)"
    sub.add_argument("--stage", choices=LOG_STAGES, default="training", help=text)


def _cancel(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--yes", action="store_true", help="cancel without a confirmation; without a terminal none is asked for"
    )


def _results(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("runs", metavar="RUN|SUITE|PATH|CLUSTER:PATH", nargs="+")
    text = "rule of the result: the recipe's (default), or that of one of NVIDIA's tools"
    sub.add_argument("--rule", choices=("recipe", "parse_train_timing", "llmb-run"), default="recipe", help=text)
    _add_strict(sub)
    _add_form(sub)
    _add_selection(sub)


def _compare(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("runs", metavar="RUN|SUITE", nargs="*", help="runs to compare; the first is the reference")
    text = "compare RUN… with these in pairs, for example with the runs before a change"
    sub.add_argument("--against", metavar="RUN|SUITE", nargs="+", default=[], help=text)
    text = "purpose of the comparison, which decides what may differ (default: the best fit)"
    sub.add_argument("--for", dest="purpose", choices=_PURPOSES, help=text)
    sub.add_argument("--diff", action="store_true", help="show how scripts and files of two runs differ")
    sub.add_argument("--nodes", action="store_true", help="show the nodes on which runs (default: all) were slow")
    sub.add_argument("--cluster", metavar="C", help="with --nodes: only runs on this cluster")
    _add_form(sub)


def _fetch(sub: argparse.ArgumentParser) -> None:
    for kind, text in (("profiles", "Nsight profiles"), ("traces", "traces"), ("logs", "logs")):
        sub.add_argument(
            f"--{kind}", action="store_true", help=f"fetch the {text} (default: profiles, traces and logs)"
        )
    sub.add_argument("--to", metavar="DIR", help="local folder for the files (default: the run's id)")
    sub.add_argument("--limit", metavar="RATE", help="highest rate in bytes per second, such as 500k or 20M")
    sub.add_argument("--yes", action="store_true", help="fetch without a confirmation")


def _report(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("runs", metavar="RUN|SUITE", nargs="+")
    text = "file to write, .html or .md (default: Markdown to stdout)"
    sub.add_argument("-o", "--output", metavar="FILE", help=text)
    sub.add_argument("--charts", metavar="DIR", help="also write every chart into this folder, as SVG")
    sub.add_argument("--force", action="store_true", help="replace files that exist")


def _suite(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=("plan", "submit", "watch", "cancel", "list"))
    text = "file or id of a suite, or a ready-made suite: scaling, precision, repeat, acceptance, tune"
    sub.add_argument("suite", nargs="?", metavar="FILE|SUITE|KIND", help=text)
    sub.add_argument("--cluster", metavar="C", help="cluster of the suite (default: the file's)")
    sub.add_argument("--procedure", choices=_procedures(), type=_procedure, help="launch method of every run")
    sub.add_argument("--at-most", type=_count, metavar="N", help="limit of runs in the queue or running at a time")
    sub.add_argument("--stop-after", type=_count, metavar="N", help="submit no more runs after N failures")
    sub.add_argument("--shuffle", type=int, metavar="SEED", help="submit the runs in a random order with this seed")
    sub.add_argument("--new", action="store_true", help="with submit: start another suite, although this one is active")
    sub.add_argument("--yes", action="store_true", help="submit or cancel without a confirmation")
    text = "with submit: confirm the suite's GPU-hours if they exceed `limits.suite_gpu_hours`"
    sub.add_argument("--gpu-hours", type=float, metavar="N", help=text)
    sub.add_argument("--once", action="store_true", help="with watch: print the current state and exit")
    _add_strict(sub, "with watch: ")
    sub.add_argument("--offline", action="store_true", help="with plan: do not ask the cluster for its free nodes")
    of_kind = sub.add_argument_group("for a ready-made suite")
    text = "number of repeats of each configuration, or of layouts that `tune` tries"
    of_kind.add_argument("--count", type=_count, metavar="N", help=text)
    text = "largest scale (default: the largest that the cluster has)"
    of_kind.add_argument("--max-scale", type=_count, metavar="GPUS", help=text)
    _add_selection(sub)


def _export(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("names", metavar="RUN|SUITE", nargs="+")
    sub.add_argument("-o", "--output", metavar="FILE.tar.zst", required=True, help="new file for the archive")
    text = "replace host and user names, addresses and home paths with aliases"
    sub.add_argument("--anonymous", action="store_true", help=text)


def _verify(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("file", metavar="FILE")


_FLAGS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "list": _list,
    "plan": _plan,
    "demo": _demo,
    "clusters": _clusters,
    "config": _config,
    "doctor": _on_cluster,
    "install": _on_cluster,
    "llmb": _llmb,
    "secrets": _secrets,
    "submit": _submit,
    "disk": _disk,
    "suite": _suite,
    "jobs": _jobs,
    "note": _note,
    "watch": _watch,
    "logs": _logs,
    "explain": _explain,
    "cancel": _cancel,
    "results": _results,
    "compare": _compare,
    "fetch": _fetch,
    "report": _report,
    "export": _export,
    "verify": _verify,
}


_ON_CLUSTER = ("doctor", "install", "llmb", "secrets", "disk")
_OF_RUN = ("note", "watch", "cancel", "suspend", "resume", "fetch")


def add_flags(sub: argparse.ArgumentParser, verb: str) -> None:
    """Add the flags of a verb to its parser."""
    if verb in _ON_CLUSTER:
        sub.add_argument("cluster", metavar="CLUSTER")
    if verb in _OF_RUN:
        sub.add_argument("run", metavar="RUN")
    if verb in _FLAGS:
        _FLAGS[verb](sub)
