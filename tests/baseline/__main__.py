"""`python -m tests.baseline`: writes the archive and the answers of this version over those that are kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.baseline.answers import ARCHIVE, HERE, VERBS, answer, live_answers

os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
with tempfile.TemporaryDirectory() as folder:
    answer(Path(folder) / "archive", VERBS["export"])
    shutil.copy(Path(folder) / "archive" / ARCHIVE.name, ARCHIVE)
    shutil.rmtree(HERE / "answers", ignore_errors=True)
    (HERE / "answers").mkdir()
    made = ((name, answer(Path(folder) / name, words)) for name, words in VERBS.items())
    for name, text in (*made, *live_answers(Path(folder) / "live")):
        (HERE / "answers" / name).write_text(text, encoding="utf-8")
