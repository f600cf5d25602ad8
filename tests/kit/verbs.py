"""`llmb-tui VERB …` as another program sees it: exit code, stdout, stderr; in a new process, or in this one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from llmb_tui.cli import main

Completed = subprocess.CompletedProcess[str]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Environment variables of a user whose files are all below `home`."""
    folders = {"LLMB_TUI_CONFIG_DIR": str(home / "config"), "LLMB_TUI_STATE_DIR": str(home / "state")}
    variables = {name: os.environ[name] for name in ("PATH", "PYTHON_KEYRING_BACKEND")}
    return {"HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(home), **variables, **folders, **more}


def start(words: tuple[str, ...], variables: Mapping[str, str], stdin: str = "") -> Completed:
    """Run a verb in a new process; takes a second, or four if the renderer imports NeMo-Run."""
    return subprocess.run(
        [sys.executable, "-m", "llmb_tui", *words],
        input=stdin, capture_output=True, text=True, check=False, timeout=240, env=variables,
    )  # fmt: skip


def run(words: tuple[str, ...], variables: Mapping[str, str], stdin: str = "") -> Completed:
    """Run a verb in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    stdin_stream = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    with (
        patch.dict(os.environ, variables, clear=True),
        patch("tempfile.tempdir", None),  # Python reads TMPDIR only once
        patch("sys.stdin", stdin_stream),
        redirect_stdout(streams[0]),
        redirect_stderr(streams[1]),
    ):
        try:
            code = main(words)
        except SystemExit as exit_error:  # raised by argparse
            code = int(exit_error.code or 0)
    for stream in streams:
        stream.seek(0)
    return subprocess.CompletedProcess(words, code, streams[0].read(), streams[1].read())
