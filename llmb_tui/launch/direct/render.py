"""`render`: the batch script of a `LaunchSpec`, by NeMo-Run in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict

from llmb_tui.errors import Trouble
from llmb_tui.launch.direct.spec_of import checked
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.text import clean_line

_COMMAND = (sys.executable, "-m", "llmb_tui.launch.direct.render_worker")
_MEND = "Install llmb-tui again with the versions that it asks for: `pip install --force-reinstall llmb-tui`."


def render(spec: LaunchSpec, deadline_s: float = 60.0) -> str:
    """Text of the script that Slurm would be given. Takes 1 to 2 seconds, most of it importing nemo-run.

    Raises Trouble: exit code 1 for a value that must not be in a script, 2 when nemo-run fails or takes too long.
    """
    request = json.dumps(asdict(checked(spec)))
    # In an empty directory, so that nothing there is imported; in a session of its own, so that it has no terminal.
    with (
        tempfile.TemporaryDirectory(prefix="llmb-tui-render-") as home,
        subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=home,
            env={**os.environ, "NEMORUN_HOME": home, "PYTHONUTF8": "1", "PYTHONWARNINGS": "ignore"},
            start_new_session=True,
        ) as process,
    ):
        try:
            stdout, stderr = process.communicate(request, timeout=deadline_s)
        except subprocess.TimeoutExpired:
            raise Trouble(
                "The batch script could not be rendered.",
                f"nemo-run did not answer within {deadline_s:.0f} s.",
                "Try again; the first start after an installation is the slowest.",
            ) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return _script(process.returncode, stdout, stderr)


def _script(exit_code: int, stdout: str, stderr: str) -> str:
    with contextlib.suppress(ValueError, KeyError, IndexError, TypeError):
        if exit_code == 0:
            return str(json.loads(stdout.splitlines()[-1])["script"])
    last = next((line for line in reversed(stderr.splitlines()) if line.strip()), f"exit code {exit_code}")
    raise Trouble("The batch script could not be rendered.", f"nemo-run: {clean_line(last).strip()}", _MEND)
