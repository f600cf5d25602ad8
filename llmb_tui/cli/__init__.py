"""The command line: each function of the program as a verb, with `--json`.

This module imports nothing slow: `--help` is as fast as the interpreter, and a verb imports its modules when it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from llmb_tui.errors import LlmbError, error_with_remedy

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the bare command opens the wizard. Returns the exit code of docs/verbs.md."""
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = argparse.Namespace(json="--json" in words)
    try:
        arguments = _arguments(words)
        return int(arguments.verb(arguments))
    except LlmbError as error:
        return _failed(arguments, error, f"llmb-tui: {error}")
    except KeyboardInterrupt:
        return _failed(arguments, LlmbError("Interrupted.", exit_code=_INTERRUPTED))
    except BrokenPipeError:
        from llmb_tui.cli.output import abandon

        abandon(sys.stdout)  # the reader has closed the pipe, as `| head` does
        return 0
    except Exception as fault:  # noqa: BLE001 - a fault must not look like a wrong request, whose exit code is 1
        from llmb_tui.crash import report_of

        if isinstance(fault, OSError) and (file_error := error_with_remedy(fault)):
            return _failed(arguments, file_error, f"llmb-tui: {file_error}")
        internal = LlmbError("llmb-tui failed with an internal error.", f"{type(fault).__name__}.", "Please report it.")
        return _failed(arguments, internal, report_of(fault))


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. The bare command skips the parser, so that the wizard paints sooner."""
    if not words:
        from llmb_tui.cli.screen import wizard_verb

        return argparse.Namespace(verb=wizard_verb, set=[], read_only=False)
    from llmb_tui.cli.arguments import parser

    return parser().parse_args(words)


def _failed(arguments: argparse.Namespace, error: LlmbError, text: str = "") -> int:
    """Print an error and return its exit code; with `--json` also print it to stdout, as the last document."""
    import contextlib

    from llmb_tui.cli.output import OutputError, print_json, print_status

    if text:
        print_status(text)
    if getattr(arguments, "json", False):
        parts = {"what": error.what, "why": error.why, "fix": error.fix}
        with contextlib.suppress(OutputError):
            run_id = error.run_id or _run_id(getattr(arguments, "run", None))
            print_json({"error": parts, "id": run_id, **error.extra_fields})
    return error.exit_code


def _run_id(name: str | None) -> str | None:
    """The verb's argument, if it is the id of a run."""
    from llmb_tui.launch.runs import Runs
    from llmb_tui.store.paths import UserPaths

    try:
        return name if name is not None and Runs(UserPaths.of_user()).has(name) else None
    except (LlmbError, RuntimeError, OSError):  # the cause may be the error that is being reported
        return None
