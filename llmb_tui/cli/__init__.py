"""And without a screen? The same functions as verbs, with `--json`.

Nothing heavy is imported here: `--help` answers at the speed of the interpreter, and each verb imports
what it needs when it runs.
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

        abandon(sys.stdout)  # `| head` of what has no end of its own, or of `--help`
        return 0
    except Exception as fault:  # noqa: BLE001 - a fault must not look like a wrong request, which answers 1
        from llmb_tui.crash import report_of

        if isinstance(fault, OSError) and (of_file := error_with_remedy(fault)):
            return _failed(arguments, of_file, f"llmb-tui: {of_file}")
        itself = LlmbError("llmb-tui itself failed.", f"{type(fault).__name__}.", "Report it, please.")
        return _failed(arguments, itself, report_of(fault))


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    """What is asked for. The bare command needs to know no verb, and paints without."""
    if not words:
        from llmb_tui.cli.screen import wizard_verb

        return argparse.Namespace(verb=wizard_verb, set=[], read_only=False)
    from llmb_tui.cli.arguments import parser

    return parser().parse_args(words)


def _failed(arguments: argparse.Namespace, error: LlmbError, words: str = "") -> int:
    """The exit code; with `--json` the answer is one document all the same, the last line of those that print lines."""
    import contextlib

    from llmb_tui.cli.output import OutputError, print_json, print_status

    if words:
        print_status(words)
    if getattr(arguments, "json", False):
        parts = {"what": error.what, "why": error.why, "fix": error.fix}
        with contextlib.suppress(OutputError):
            run_id = error.run_id or _run_id(getattr(arguments, "run", None))
            print_json({"error": parts, "id": run_id, **error.extra_fields})
    return error.exit_code


def _run_id(given: str | None) -> str | None:
    """The run that a verb was given, if there is one."""
    from llmb_tui.launch.runs import Runs
    from llmb_tui.store.paths import UserPaths

    try:
        return given if given is not None and Runs(UserPaths.of_user()).has(given) else None
    except (LlmbError, RuntimeError, OSError):  # what goes wrong here may be what already failed
        return None
