"""`explain`: why a log ended as it did."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from llmb_tui.answers.explanation import explanation
from llmb_tui.cli.output import write
from llmb_tui.cli.user import user_services
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.watch.compressed import open_log
from llmb_tui.watch.explanation import Explanation, explain_log
from llmb_tui.watch.failure import job_cause
from llmb_tui.watch.log_reader import unreadable
from llmb_tui.watch.logcopy import newest_copy


def explain_verb(arguments: argparse.Namespace) -> int:
    """Print the causes that a log file, a run's log or stdin names. The id of a run means the run."""
    services = user_services(arguments)  # also reads the user's own rules
    name = arguments.log
    if name == "-":
        value = explain_log(sys.stdin.buffer, "-", arguments.stage)
    elif _is_run(services, name):
        value = _of_run(services, services.runs.load(name), arguments)
    else:
        try:
            with open_log(Path(name)) as file:
                value = explain_log(file, clean_line(name), arguments.stage)
        except OSError as error:
            raise unreadable(clean_line(name), error) from error
        except ValueError as error:
            raise LlmbError(f"There is no {clean_line(name)}.", fix="Name a log file or a run.", exit_code=1) from error
    write(explanation(value), arguments)
    return 0


def _of_run(services: Services, run: Run, arguments: argparse.Namespace) -> Explanation:
    """Causes by the local copy of a run's log, then by its scheduler. Raises LlmbError without a copy."""
    folder = services.runs.folder(run.id)
    path = folder / newest_copy(folder).name
    try:
        with path.open("rb") as file:
            value = explain_log(file, path.name, arguments.stage)
    except FileNotFoundError:
        fix = f"`llmb-tui logs {run.id}` copies it from the cluster if it is still there."
        raise LlmbError(f"There is no copy of the log of run {run.id} here.", fix=fix, exit_code=1) from None
    except OSError as error:
        raise unreadable(path.name, error) from error
    known = job_cause(run.job, run.words.scheduler) if run.job and not value.whole else None
    return replace(value, causes=(*value.causes, known)) if known else value


def _is_run(services: Services, name: str) -> bool:
    """Whether a run has this id; False also for a text that cannot be an id."""
    try:
        return services.runs.has(name)
    except LlmbError:
        return False
