from __future__ import annotations

from pathlib import Path

from llmb_tui.watch.failure import worst
from llmb_tui.watch.local_run import load_sidecar, save_sidecar
from tests.kit.reasons import OUT_OF_GPU_MEMORY, training_reason

SCRIPT = b"""\
export HF_TOKEN=hf_standinstandin
++ HF_TOKEN=hf_standinstandin
srun: error: cn001: task 3: Exited with exit code 1
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB
job exited with code 1
"""


def test_the_most_telling_line_is_remembered_and_nothing_else(tmp_path: Path) -> None:
    save_sidecar(tmp_path, worst(SCRIPT))
    failure = load_sidecar(tmp_path)
    assert failure is not None
    assert failure.line == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    assert failure.reason == training_reason(OUT_OF_GPU_MEMORY)
    kept = [path.read_bytes() for path in tmp_path.iterdir()]
    assert kept
    assert not any(b"hf_" in text for text in kept)


def test_files_without_a_match_save_nothing(tmp_path: Path) -> None:
    for text in (SCRIPT, b"job exited with code 0\n"):
        save_sidecar(tmp_path, worst(text))
    assert load_sidecar(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_sidecar_counts_as_unread(tmp_path: Path) -> None:
    save_sidecar(tmp_path, worst(SCRIPT))
    (path,) = tmp_path.iterdir()
    path.write_text("{")
    assert load_sidecar(tmp_path) is None
