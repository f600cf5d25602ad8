"""The flags of each verb, and what they say. Flags follow `llmb-run`, which their users know."""

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
_NO_FLAG = ("name", "read_only")  # --read-only says something else, of every verb
_WITH_FLAG = (*(field for field in FIELDS.values() if field.has_flag), *VARIANTS)
_PURPOSES = ("repeats", "changes", "clusters", "layouts", "precisions", "scales", "releases", "gpus")


def _count(text: str) -> int:
    try:
        return number(text, "N")
    except LlmbError as error:
        raise argparse.ArgumentTypeError(error.what) from error


def number(text: str, name: str) -> int:
    """A number from 1 on. Raises LlmbError (exit code 1)."""
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise LlmbError(f"{name} cannot be {text[:40]!r}.", fix="It is a number from 1 on.", exit_code=1)
    return int(text)


def _procedures() -> dict[str, str]:
    """Procedures that a person can name, each with its help text."""
    from llmb_tui.launch.procedures import PROCEDURES  # `plan` has no such flag, and is quick

    return {name: facts.flag_help for name, facts in PROCEDURES.items() if facts.flag_help}


def _procedure(text: str) -> str:
    """The name of today; an older one is taken, and said to be old, where it can be chosen."""
    name = OLD_PROCEDURES.get(text, text)
    if name != text and name in _procedures():
        print_status(f"llmb-tui: --procedure {text} is called {name} now.")
    return name


def _secret(text: str) -> str:
    """The name of a key. What is none may be a key, which is not repeated."""
    if text not in SECRETS:
        raise argparse.ArgumentTypeError(
            f"name one of {', '.join(SECRETS)}; the key itself is asked for, or read from stdin"
        )
    return text


def _add_selection(sub: argparse.ArgumentParser) -> None:
    """A flag for everything that can be set; what a run can do beside the benchmark is in a group of its own."""
    layout = sub.add_argument_group("layout, instead of the recipe's")
    more = sub.add_argument_group("beside the benchmark, where the recipe has it")
    for field in _WITH_FLAG:
        target = more if field in OPTIONS else layout if field in LAYOUT else sub
        names = [name for name in (field.short, field.flag) if name]
        if field.kind == "switch":
            target.add_argument(*names, action="store_true", help=field.help)
        else:
            target.add_argument(*names, metavar=field.metavar or None, help=field.help)


def _add_form(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--format", choices=("table", "csv", "markdown"), default="table", help="of the answer")


def _add_procedure(sub: argparse.ArgumentParser) -> None:
    names = _procedures()
    words = (f"{name}: {text}{' (default)' if name == DEFAULT_PROCEDURE else ''}" for name, text in names.items())
    text = "; ".join(words)
    sub.add_argument("--procedure", choices=names, type=_procedure, default=DEFAULT_PROCEDURE, help=text)


def selection_mapping(arguments: argparse.Namespace) -> dict[str, object]:
    """The selection flags that were given, by their long names with underscores."""
    values = {field: getattr(arguments, field.name) for field in _WITH_FLAG}
    return {field.name: _typed(field, value) for field, value in values.items() if is_given(value)}


def _typed(field: Field, text: str) -> object:
    """The number where one is meant; what is none stays, and is refused by who reads the selection."""
    return int(text) if field.kind == "number" and _NUMBER.fullmatch(text.removeprefix("-")) else text


def _list(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-w", "--workload", metavar="W[@RELEASE]", help="only this one")


def _plan(sub: argparse.ArgumentParser) -> None:
    _add_selection(sub)
    sub.add_argument(
        "--from", dest="source", metavar="FILE", help="many plans: JSON lines in (- for stdin), JSON lines out"
    )
    text = "the N layouts (20 without N) that are fastest by the estimate, the published one always among them"
    sub.add_argument("--layouts", metavar="N", nargs="?", type=_count, const=20, help=text)
    sub.add_argument("--cluster", metavar="C", help="say what finished runs on this cluster let one expect, too")


def _demo(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--headless", action="store_true", help="no screen: print each stage and the verdict")
    sub.add_argument("--cluster", choices=("slurm", "runai"), default="slurm", help="its kind (default: slurm)")
    _add_selection(sub)


def _clusters(sub: argparse.ArgumentParser) -> None:
    from llmb_tui.cluster.kinds import KINDS, UNNAMED  # `plan` needs no kind of cluster, and is quick

    sub.add_argument("action", nargs="?", choices=("add",), help="save a cluster")
    sub.add_argument("name", nargs="?", metavar="NAME")
    sub.add_argument("--kind", choices=tuple(KINDS), default=UNNAMED, help=f"of cluster (default: {UNNAMED})")
    known: set[str] = set()
    for kind in KINDS.values():
        group = sub.add_argument_group(f"with {kind.words.scheduler}")
        for field in profile_flags(kind):
            if field.name not in known:
                _add_field(group, field)
                known.add(field.name)


def profile_flags(kind: ClusterKind[Any]) -> tuple[ProfileField, ...]:
    """Fields of a kind's profile that `clusters add` takes."""
    return tuple(field for field in kind.fields if field.name not in _NO_FLAG)


def _add_field(group: argparse._ArgumentGroup, field: ProfileField) -> None:
    hint = f" ({field.hint})" if field.hint else ""
    group.add_argument(field.flag, metavar="TEXT", help=f"{field.title}{hint}{', needed' * field.needed}")


def _config(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=("path", "show", "validate"))


def _on_cluster(sub: argparse.ArgumentParser) -> None:
    _add_procedure(sub)
    _add_selection(sub)


def _llmb(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--open", metavar="JOB", help="remember this run of it, so that it is watched as ours are")


def _secrets(sub: argparse.ArgumentParser) -> None:
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


def _submit(sub: argparse.ArgumentParser) -> None:
    _add_selection(sub)
    sub.add_argument("--cluster", metavar="C", help="where; `local` is this machine as its own login node")
    _add_procedure(sub)
    sub.set_defaults(procedure=None)  # with --again that of the run
    text = "what a run was, once more; flags of the selection, cluster or procedure change that of it"
    sub.add_argument("--again", metavar="RUN", help=text)
    text = "send a run of which nothing was sent, as it was agreed to; it goes with no selection"
    sub.add_argument("--resume", dest="run", metavar="RUN", help=text)
    text = "print the batch script, or the command of NVIDIA's own scripts, and submit nothing"
    sub.add_argument("--dry-run", action="store_true", help=text)
    sub.add_argument("--yes", action="store_true", help="submit without asking")


def _disk(sub: argparse.ArgumentParser) -> None:
    text = "remove these for good, after a question: names as listed, ids of runs, or trash; never what is still needed"
    sub.add_argument("--remove", metavar="NAME", nargs="+", default=[], help=text)
    sub.add_argument("--yes", action="store_true", help="with --remove: without asking")


def _jobs(sub: argparse.ArgumentParser) -> None:
    text = "remove this machine's copies of logs of runs that are over, after showing them; results stay"
    sub.add_argument("--prune", action="store_true", help=text)
    text = "with --prune: only logs that did not grow for so many days"
    sub.add_argument("--older-than", metavar="DAYS", type=_count, help=text)
    sub.add_argument("--yes", action="store_true", help="with --prune: remove them without asking")


def _note(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("text", metavar="TEXT", nargs="?", help="say this of it; empty takes the note away")
    text = "may be repeated; `jobs` and the list of runs show it"
    sub.add_argument("--tag", metavar="T", action="append", default=[], help=f"give it a tag; {text}")
    sub.add_argument("--untag", metavar="T", action="append", default=[], help="take a tag away; may be repeated")


def _watch(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--once", action="store_true", help="say how it stands and leave")
    _add_strict(sub)


def _add_strict(sub: argparse.ArgumentParser, where: str = "") -> None:
    text = f"{where}end with exit code 3 for every result other than PASS, also without a verdict"
    sub.add_argument("--strict", action="store_true", help=text)


def _logs(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", metavar="RUN|FILE")
    text = "go on with what is written, until the job ends; of a file until ^C"
    sub.add_argument("-f", "--follow", action="store_true", help=text)


def _explain(sub: argparse.ArgumentParser) -> None:
    from llmb_tui.diagnosis.rule import LOG_STAGES

    sub.add_argument("log", metavar="FILE|RUN|-", help="a log file, a run of this machine, or - for stdin")
    text = "what wrote the log: decides which failure rules apply (default: training)"
    sub.add_argument("--stage", choices=LOG_STAGES, default="training", help=text)


def _cancel(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--yes", action="store_true", help="cancel without asking; where there is no terminal nobody is asked"
    )


def _results(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("runs", metavar="RUN|SUITE|PATH|CLUSTER:PATH", nargs="+")
    text = "whose result: that of the run's recipe (default), or what one of NVIDIA's tools says of the log"
    sub.add_argument("--rule", choices=("recipe", "parse_train_timing", "llmb-run"), default="recipe", help=text)
    _add_strict(sub)
    _add_form(sub)
    _add_selection(sub)


def _compare(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("runs", metavar="RUN|SUITE", nargs="*", help="the first is what others are held against")
    text = "hold RUN… against these, pair by pair, such as the runs before a change"
    sub.add_argument("--against", metavar="RUN|SUITE", nargs="+", default=[], help=text)
    text = "what may differ between the runs (default: what fits them best)"
    sub.add_argument("--for", dest="purpose", choices=_PURPOSES, help=text)
    sub.add_argument("--diff", action="store_true", help="of two runs: what differs in their scripts and files")
    sub.add_argument("--nodes", action="store_true", help="which nodes runs were slow with; all runs, if none is named")
    sub.add_argument("--cluster", metavar="C", help="with --nodes: only runs on this one")
    _add_form(sub)


def _fetch(sub: argparse.ArgumentParser) -> None:
    for kind, text in (("profiles", "Nsight profiles"), ("traces", "traces"), ("logs", "logs")):
        sub.add_argument(f"--{kind}", action="store_true", help=f"{text}; without any of these three all")
    sub.add_argument("--to", metavar="DIR", help="folder to put them into (default: the run's id, here)")
    sub.add_argument("--limit", metavar="RATE", help="at most so many bytes a second, such as 500k or 20M")
    sub.add_argument("--yes", action="store_true", help="fetch without asking")


def _report(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("runs", metavar="RUN|SUITE", nargs="+")
    text = "the file to write, .html or .md; without it the report goes to stdout as Markdown"
    sub.add_argument("-o", "--output", metavar="FILE", help=text)
    sub.add_argument("--charts", metavar="DIR", help="write every chart into this folder, as SVG")
    sub.add_argument("--force", action="store_true", help="replace files that exist")


def _suite(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=("plan", "submit", "watch", "cancel", "list"))
    text = "a suite's file or id, or one that is ready-made: scaling, precision, repeat, acceptance, tune"
    sub.add_argument("suite", nargs="?", metavar="FILE|SUITE|KIND", help=text)
    sub.add_argument("--cluster", metavar="C", help="instead of the file's")
    sub.add_argument("--procedure", choices=_procedures(), type=_procedure, help="of every run")
    sub.add_argument("--at-most", type=_count, metavar="N", help="so many runs in the queue or running at a time")
    sub.add_argument("--stop-after", type=_count, metavar="N", help="send nothing more after so many failures")
    sub.add_argument("--shuffle", type=int, metavar="SEED", help="send them in an order by this seed")
    sub.add_argument("--new", action="store_true", help="with submit: begin another beside one that goes on")
    sub.add_argument("--yes", action="store_true", help="submit or cancel without asking")
    text = "with submit: the suite's GPU-hours, where they are above `limits.suite_gpu_hours`"
    sub.add_argument("--gpu-hours", type=float, metavar="N", help=text)
    sub.add_argument("--once", action="store_true", help="with watch: say how it stands and leave")
    _add_strict(sub, "with watch: ")
    sub.add_argument("--offline", action="store_true", help="with plan: do not ask the cluster how many nodes are free")
    of_kind = sub.add_argument_group("of a ready-made suite")
    text = "repeats of each configuration, or the layouts that a tune tries"
    of_kind.add_argument("--count", type=_count, metavar="N", help=text)
    of_kind.add_argument("--max-scale", type=_count, metavar="GPUS", help="instead of what the cluster has")
    _add_selection(sub)


def _export(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("names", metavar="RUN|SUITE", nargs="+")
    sub.add_argument("-o", "--output", metavar="FILE.tar.zst", required=True, help="the file, which must not exist")
    text = "replace host and user names, addresses and home paths by aliases"
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
    """Give a verb's parser the flags that it alone has."""
    if verb in _ON_CLUSTER:
        sub.add_argument("cluster", metavar="CLUSTER")
    if verb in _OF_RUN:
        sub.add_argument("run", metavar="RUN")
    if verb in _FLAGS:
        _FLAGS[verb](sub)
