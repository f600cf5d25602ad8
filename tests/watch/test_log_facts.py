"""Facts of a complete log: steps of the last start, checkpoints, losses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from llmb_tui.analysis.result import loss_check
from llmb_tui.analysis.statistics import mean_half_width, spread
from llmb_tui.watch.log_facts import CheckpointTime, LogFacts
from llmb_tui.watch.log_reader import read_log

GOLDEN = Path(__file__).parents[1] / "watch" / "golden"
LINE = (
    "Training epoch 0, iteration {0}/9 | lr: 1e-4 | global_batch_size: 8 | global_step: {0} | reduced_train_loss: {1}"
)
LINE += " | train_step_timing in s: 2.0\n"


def facts_of(folder: Path, text: str) -> LogFacts:
    path = folder / "log.out"
    path.write_text(text)
    return read_log(path)


def test_checkpoints_of_a_genuine_log() -> None:
    saved, loaded = read_log(GOLDEN / "nemo-2.2.1-save.log"), read_log(GOLDEN / "nemo-2.2.1-load.log")
    assert {one.kind for one in saved.checkpoints} == {"save"}
    assert {one.kind for one in loaded.checkpoints} == {"load"}
    assert all(one.seconds > 0 for one in (*saved.checkpoints, *loaded.checkpoints))


def test_the_lines_of_the_recipes(tmp_path: Path) -> None:
    text = (
        "[NeMo I 2025-04-11 14:48:45 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 50 : "
        "Start time: 1744408121.151s : Save duration: 4.389s\n"
        "[NeMo I 2025-04-11 14:46:18 nemo_logging:393] Global Checkpoint Load : Rank : 0 : "
        "Start time : 1744407969.270s : Time spent in load_checkpoint: 9.712s\n"
    )
    assert facts_of(tmp_path, text).checkpoints == (
        CheckpointTime("save", 50, 4.389),
        CheckpointTime("load", None, 9.712),
    )


def test_a_checkpoint_whose_numbers_another_rank_broke_is_passed_over(tmp_path: Path) -> None:
    line = "Global Checkpoint Save : Rank: 0 : Iteration: {} : Start time: 1760000000.123s : Save duration: {}s\n"
    broken = [("49", "12.3.4"), ("49", "."), ("9" * 5000, "1.5"), ("49", "9" * 400)]
    text = "".join(line.format(*numbers) for numbers in [*broken, ("50", "4.389")])
    assert facts_of(tmp_path, text).checkpoints == (CheckpointTime("save", 50, 4.389),)


def test_a_second_start_replaces_repeated_steps(tmp_path: Path) -> None:
    bar = "Epoch 0: : 10%| {0}/9 [00:01<00:02, reduced_train_loss={1}, global_step={2}, train_step_timing in s=2.0]\r"
    first = "".join(bar.format(at + 1, 5 - at, at) for at in range(4))
    again = "".join(bar.format(at + 1, 9 - at, at) for at in range(2))
    facts = facts_of(tmp_path, first + again + "\n")
    assert facts.starts == 2
    assert [(step.index, step.loss) for step in facts.steps] == [(0, 9.0), (1, 8.0)]


def test_a_run_that_continues_from_a_checkpoint_does_so_too(tmp_path: Path) -> None:
    first, again = (LINE.format(at, 12.0) for at in range(8)), (LINE.format(at, 3.0) for at in range(5, 10))
    facts = facts_of(tmp_path, "".join([*first, *again]))
    assert (facts.starts, facts.again_at) == (2, (5,))
    assert [(step.index, step.loss) for step in facts.steps] == [(at, 12.0 if at < 5 else 3.0) for at in range(10)]


def test_a_loss_that_is_not_a_number_is_reported(tmp_path: Path) -> None:
    losses = [12.0, 11.0, "nan", 9.0]
    check = loss_check(facts_of(tmp_path, "".join(LINE.format(at, loss) for at, loss in enumerate(losses))))
    assert check is not None
    assert (check.first, check.last, check.not_finite, check.falls) == (12.0, 9.0, 1, False)
    falling = loss_check(facts_of(tmp_path, "".join(LINE.format(at, 12 - at) for at in range(9))))
    assert falling is not None
    assert falling.falls
    assert falling.words == "falls: 12 to 4"


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ([10, *[14] * 9, *[12] * 40], "falls: 13.6 to 12, means of the first and the last fifth"),
        ([10], "10 at the only step"),
        ([9, 9], "does not fall: 9 to 9"),
        ([1.5e308] * 10, "does not fall: 1.5e+308 to 1.5e+308"),
    ],
)
def test_the_text_of_a_loss_matches_its_numbers(tmp_path: Path, losses: list[float], words: str) -> None:
    check = loss_check(facts_of(tmp_path, "".join(LINE.format(at, loss) for at, loss in enumerate(losses))))
    assert check is not None
    assert check.words == words


def test_statistics_that_were_calculated_manually() -> None:
    sample_statistics = spread([2.0, 4.0, 6.0])
    assert sample_statistics is not None
    assert (sample_statistics.mean, sample_statistics.median, sample_statistics.stdev) == (4.0, 4.0, 2.0)
    assert math.isclose(sample_statistics.population_stdev, math.sqrt(8 / 3))
    half = mean_half_width([2.0, 4.0, 6.0])
    assert half is not None
    assert math.isclose(half, 4.303 * 2 / math.sqrt(3))
    assert mean_half_width([2.0]) is None


def test_versions_and_settings_of_genuine_logs() -> None:
    older, newer = read_log(GOLDEN / "nemo-2.2.1.log"), read_log(GOLDEN / "nemo-2.4.0-flops.log")
    assert older.versions == (("NeMo", "2.2.1"), ("Megatron Core", "0.11.0"))
    assert newer.versions == (("NeMo", "2.4.0"), ("Megatron Core", "0.13.0"))
    assert len(older.settings) == 85
    assert dict(older.settings)["model.config.num_layers"] == "2"
    assert dict(older.settings)["trainer.callbacks[GarbageCollectionCallback].gc_interval_train"] == "100"
    refused = read_log(GOLDEN / "nemo-2.2.1-unknown-field.log")
    assert (refused.versions, refused.settings) == ((), ())


@pytest.mark.parametrize("of_settings", [0.1, 0.5, 0.9])
def test_settings_are_complete_when_a_chunk_boundary_cuts_them(tmp_path: Path, of_settings: float) -> None:
    golden = (GOLDEN / "nemo-2.2.1.log").read_text()
    begin, end = golden.index("\nmodel.config"), golden.rindex("\noptim")
    before = (1 << 20) - round(begin + of_settings * (end - begin))
    assert len(facts_of(tmp_path, "x" * (before - 1) + "\n" + golden).settings) == 85


def test_versions_in_the_words_of_others(tmp_path: Path) -> None:
    text = (
        "GSW: MODEL=grok1 FRAMEWORK=nemo MODEL_SIZE=314b JOB_NUM_NODES=8 GPUS_PER_NODE=8 DTYPE=fp8 SYNTHETIC_DATA=True "
        "GSW_VERSION=25.02 FW_VERSION=24.12 IMAGE='/stage/nvidia+nemo+24.12.sqsh' JOB_ID=7 JOB_MODE=training\n"
        "cn001:355353:358657 [0] NCCL INFO cudaDriverVersion 12020\n"
        "cn002:355353:358657 [0] NCCL INFO cudaDriverVersion 12080\n"
        "NCCL version 2.14.3+cuda11.8\n"
        "ERROR: This container was built for NVIDIA Driver Release 450.51 or later, but\n"
        "       version 440.33.01 was detected and compatibility mode is UNAVAILABLE.\n"
    )
    assert set(facts_of(tmp_path, text).versions) == {
        ("container", "/stage/nvidia+nemo+24.12.sqsh"),
        ("framework", "24.12"),
        ("recipe", "25.02"),
        ("NCCL", "2.14.3"),
        ("CUDA of the driver", "12.2"),
        ("CUDA of the driver", "12.8"),
        ("driver", "440.33.01"),
    }
