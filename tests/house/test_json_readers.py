"""JSON of other programs is read by `parse_json`, which knows every way in which reading can fail."""

from __future__ import annotations

import re
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "llmb_tui"
OWN = {
    "language/json_text.py": "`parse_json` itself",
    "catalog/kept.py": "the program's own cache, with classes of its own",
    "evidence/contents.py": "a document that was written a moment ago",
    "launch/direct/render.py": "the program's own renderer",
    "launch/direct/render_worker.py": "the program's own renderer",
    "launch/runai/delivery.py": "the program's own request",
    "remote/pretrain.py": "runs on the cluster, without the program's modules",
}
"""Files that read only what the program wrote itself."""


def test_only_readers_of_own_documents_do_without_parse_json() -> None:
    readers = {
        str(file.relative_to(PROGRAM))
        for file in PROGRAM.rglob("*.py")
        if re.search(r"\bjson\.loads?\(|JSONDecoder", file.read_text()) and "demo" not in file.parts
    }
    assert readers == set(OWN)
