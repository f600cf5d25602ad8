"""`packed_files`: the files of a run as one variable of its workload: no volume, no further right. Pure."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from collections.abc import Iterable

from llmb_tui.errors import Trouble

FILES = "LLMB_FILES"
"""The variable. What is in it can be seen by whoever may see the workload: no secret ever is."""
MOST = 128 << 10
"""Linux allows no longer string in an environment: MAX_ARG_STRLEN in linux/binfmts.h."""


def packed_files(files: Iterable[tuple[str, str]]) -> str:
    """(path, text) as base64 of a compressed tar; the same files are always the same text.

    Raises Trouble (exit code 1) where they are too long.
    """
    content = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path, text in files:
            data = text.encode()
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    packed = base64.b64encode(content.getvalue()).decode()
    if len(packed) + len(FILES) + 2 > MOST:
        raise Trouble(
            "The files of this run do not fit into its workload.",
            f"Packed they are {len(packed):,} bytes, and a variable has at most {MOST:,}.",
            "Leave out what the preset sets and the recipe has already.",
            exit_code=1,
        )
    return packed
