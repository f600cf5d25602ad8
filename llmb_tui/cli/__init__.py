"""And without a screen? The same functions as verbs, with `--json`.

Nothing heavy is imported here: `--help` answers at the speed of the interpreter, and each verb imports
what it needs when it runs.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from llmb_tui.cli.arguments import parser
from llmb_tui.cli.output import say
from llmb_tui.errors import Trouble


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the bare command opens the wizard. Returns the exit code of CONTRIBUTING.md, "Verbs"."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.verb(arguments))
    except Trouble as trouble:
        say(f"llmb-tui: {trouble}")
        return trouble.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has gone (`| head`); Python must not complain about it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:  # noqa: BLE001 - a fault of the program must not look like a wrong request, which answers 1
        traceback.print_exc()
        return 2
