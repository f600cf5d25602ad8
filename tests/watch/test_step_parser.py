from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.watch.log_formats import nemo2
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

NEMO_340B = (
    "Training epoch 0, iteration 49/49 | lr: 4.491e-06 | global_batch_size: 256 | global_step: 49 | "
    "peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | reduced_train_loss: 12.81 | "
    "train_step_timing in s: 2.693 | consumed_samples: 12800\n"
)
LLAMA_BAR = (
    "Epoch 0: : 100%|██████████| 50/50 [16:26<00:00, v_num=gjbq, reduced_train_loss=11.70, global_step=49.00, "
    "consumed_samples=12600.0, train_step_timing in s=12.80]"
)
GROK_BAR = (
    "Epoch 0: : 100%|██████████| 50/50 [23:22<00:00, reduced_train_loss=0.186, global_step=49.00, "
    "consumed_samples=51200.0, train_step_timing in s=24.00]"
)
BRIDGE = (
    "[2025-12-19 10:49:15] iteration        1/       1 | consumed samples:          128 | elapsed time per iteration "
    "(ms): 20289.1 | learning rate: 3.000000E-05 | global batch size:   128 | lm loss: 1.258695E+01 | loss scale: 1.0 "
    "| grad norm: 10.275 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)


def steps_of(data: str | bytes, log_format: LogFormatId = "nemo2") -> list[Step]:
    """Parse the log; return its steps without the lines that checks quote, which have separate tests."""
    parser = StepParser(log_format)
    steps = parser.feed(data if isinstance(data, bytes) else data.encode()) + parser.close()
    return [step._replace(line="") for step in steps]


def test_nemo_2_line() -> None:
    assert steps_of(NEMO_340B) == [
        Step(
            index=49,
            total=50,
            step_time_s=2.693,
            loss=12.81,
            consumed_samples=12800,
            memory_peak_bytes=72972500992,
            memory_allocated_bytes=34466545664,
            batch=256,
        )
    ]


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            "Training epoch 0, iteration 0/5 | lr: 5.988e-07 | global_batch_size: 4 | global_step: 0 | "
            "reduced_train_loss: 6.267 | train_step_timing in s: 1.611\n",
            Step(0, 6, step_time_s=1.611, loss=6.267, batch=4),
        ),
        (
            "Training epoch 0, iteration 2/2 | train_step_timing in s: 0.02828 | consumed_samples: 12 | "
            "tflops_per_sec_per_gpu: 0.4958\n",
            Step(2, 3, step_time_s=0.02828, consumed_samples=12, tflops_per_gpu=0.4958),
        ),
        (
            "Training epoch 0, iteration 2/2 | TFLOPS_per_GPU: 1.601e+03 | train_step_timing in s: 1.6e+01\n",
            Step(2, 3, step_time_s=16.0, tflops_per_gpu=1601.0),
        ),
        (
            "Training epoch 0, iteration 2/2 | TFLOPS_per_GPU: 1058. | train_step_timing in s: 16\n",
            Step(2, 3, step_time_s=16.0, tflops_per_gpu=1058.0),
        ),
    ],
    ids=["first step", "older TFLOPS key, order of fields", "scientific", "whole floats"],
)
def test_variants_of_the_nemo_2_line(line: str, step: Step) -> None:
    assert steps_of(line) == [step]


def test_the_line_after_loading_a_checkpoint() -> None:
    line = "Training epoch 0, iteration 0/0 | lr: 1e-06 | global_step: 50 | train_step_timing in s: 3.1\n"
    assert steps_of(line) == [Step(0, 1, step_time_s=3.1)]


def test_a_second_epoch_continues_counting_by_the_global_step() -> None:
    line = "Training epoch 1, iteration 0/99 | global_step: 50 | train_step_timing in s: 3.1\n"
    assert steps_of(line) == [Step(50, 100, step_time_s=3.1)]


@pytest.mark.parametrize(
    ("bar", "step"),
    [
        (LLAMA_BAR, Step(49, 50, step_time_s=12.8, loss=11.7, consumed_samples=12600)),
        (GROK_BAR, Step(49, 50, step_time_s=24.0, loss=0.186, consumed_samples=51200)),
    ],
)
def test_hydra_bar(bar: str, step: Step) -> None:
    assert steps_of("\r" + bar, "hydra") == [step]


def test_a_repainted_step_counts_once_and_its_last_paint_wins(hydra_frame: Callable[..., str]) -> None:
    data = "".join([hydra_frame(0), hydra_frame(0, count=2), hydra_frame(1, 9), hydra_frame(1, 10), hydra_frame(2, 11)])
    assert [(s.index, s.step_time_s) for s in steps_of(data, "hydra")] == [(0, 12.8), (1, 10.0), (2, 11.0)]


def test_the_newest_step_of_a_bar_is_pending_until_the_next(hydra_frame: Callable[..., str]) -> None:
    parser = StepParser("hydra")
    assert parser.feed(hydra_frame(0).encode()) == []
    assert parser.pending is not None
    assert parser.pending.index == 0
    assert [s.index for s in parser.feed(hydra_frame(1).encode())] == [0]
    assert [s.index for s in parser.close()] == [1]
    assert parser.close() == []


@pytest.mark.parametrize("seed", range(5))
def test_a_job_that_was_started_again_writes_on_in_the_same_log(
    hydra_frame: Callable[..., str], pieces: Callable[[bytes, int], Iterator[bytes]], seed: int
) -> None:
    first = [hydra_frame(i, i + 1) for i in range(7)]
    second = ["\nslurmstepd: error: *** STEP 4.0 ON cn001 CANCELLED DUE TO JOB REQUEUE ***\n\r 0/50 [00:00<?]"]
    second += [hydra_frame(i, i + 11) for i in range(4)]
    parser = StepParser("hydra")
    found = [step for piece in pieces("".join([*first, *second]).encode(), seed) for step in parser.feed(piece)]
    assert [step.index for step in [*found, *parser.close()]] == [*range(7), *range(4)]
    assert parser.failure is None


@pytest.mark.parametrize(
    "line",
    [
        "Training epoch 0, iteration {0}/49 | global_step: {0} | train_step_timing in s: {2}\n",
        "[2025-12-19] iteration {1}/ 50 | elapsed time per iteration (ms): {2}e3 | lm loss: 1.0 |\n",
    ],
    ids=["NeMo 2", "Megatron-Bridge"],
)
def test_steps_of_a_restarted_job_are_returned_again(
    line: str, pieces: Callable[[bytes, int], Iterator[bytes]]
) -> None:
    """Otherwise the steps of the second start would be ignored up to the last step of the first start."""
    lines = [line.format(i, i + 1, 2.9) for i in range(42)]
    lines += ["slurmstepd: error: *** STEP 4.0 ON cn001 CANCELLED DUE TO JOB REQUEUE ***\n"]
    lines += [line.format(i, i + 1, 1.98) for i in range(50)]
    parser = StepParser("nemo2")
    found = [step for piece in pieces("".join(lines).encode(), 1) for step in parser.feed(piece)]
    assert [step.index for step in found] == [*range(42), *range(50)]
    assert {step.step_time_s for step in found[42:]} == {1.98}
    assert parser.complete
    assert parser.failure is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("log_format", ["nemo2", "hydra"])
def test_a_job_that_continues_from_a_checkpoint_is_a_further_start(
    log_format: LogFormatId,
    nemo_line: Callable[..., str],
    hydra_frame: Callable[..., str],
    pieces: Callable[[bytes, int], Iterator[bytes]],
    seed: int,
) -> None:
    line = nemo_line if log_format == "nemo2" else hydra_frame
    log = [line(i, 2.0) for i in range(44)] + ["\nsrun: error: cn001: task 3: Killed\n"]
    log += [line(i, 4.0) for i in range(30, 50)]
    parser = StepParser(log_format)
    found = [step for piece in pieces("".join(log).encode(), seed) for step in parser.feed(piece)] + parser.close()
    assert [(step.index, step.step_time_s) for step in found[-21:]] == [(43, 2.0), *((i, 4.0) for i in range(30, 50))]
    assert [step.index for step in found[:-20]] == [*range(44)]


def test_ranks_that_write_a_step_apart_are_no_further_start(nemo_line: Callable[..., str]) -> None:
    log = "".join(nemo_line(i, 2.0) + nemo_line(i - 1, 2.5) for i in range(1, 30))
    assert [(step.index, step.step_time_s) for step in steps_of(log)] == [(i, 2.0) for i in range(1, 30)]


def test_frames_without_separators_do_not_count_as_a_restart(hydra_frame: Callable[..., str]) -> None:
    """The parser reads the bytes after the last line end again with each piece."""
    parser = StepParser("hydra")
    frames = [hydra_frame(i, i + 1).lstrip("\r") for i in range(3)]
    found = [step for frame in frames for step in parser.feed(frame.encode())]
    assert [step.index for step in [*found, *parser.close()]] == [0, 1, 2]


def test_a_progress_bar_without_a_total_gives_a_step_without_a_total() -> None:
    assert steps_of("\rEpoch 0: : 3/? [00:10, global_step=2.000, train_step_timing in s=3.0]", "hydra") == [
        Step(2, None, step_time_s=3.0)
    ]


def test_other_bars_are_no_steps() -> None:
    data = "\rValidation DataLoader 0: : 50%|█████     | 4/8 [00:10<00:10]\rSanity Checking: 1/2 [00:01<00:01]\n"
    assert steps_of(data, "hydra") == []


def test_megatron_bridge_line() -> None:
    tflops = "Step Time : 20.29s GPU utilization: 663.5MODEL_TFLOP/s/GPU\n"
    counts: dict[str, Any] = {"batch": 128, "skipped": 0, "not_a_number": 0, "loss_scale": 1, "grad_norm": 10.275}
    step = Step(0, 1, step_time_s=20289.1 / 1000, loss=12.58695, consumed_samples=128, **counts)
    assert steps_of(BRIDGE) == [step]
    assert steps_of(tflops + BRIDGE) == [
        Step(0, 1, step_time_s=20289.1 / 1000, loss=12.58695, consumed_samples=128, tflops_per_gpu=663.5, **counts)
    ]
    assert steps_of("throughput (TFLOP/s/GPU): 1\n" + BRIDGE) == [step]


def test_the_tflops_of_a_bridge_step_are_not_attributed_to_the_next_step() -> None:
    line = "[2025-12-19 10:49:15] iteration {}/ 2 | elapsed time per iteration (ms): 1000.0 | lm loss: 1.0E+01 |\n"
    data = "Step Time : 1.0s GPU utilization: 300.0 MODEL_TFLOP/s/GPU\n" + line.format(1) + line.format(2)
    assert [s.tflops_per_gpu for s in steps_of(data)] == [300.0, None]


@pytest.mark.parametrize("field", ["throughput per GPU (TFLOP/s/GPU): 603.2", "603.2 MODEL_TFLOP/s/GPU"])
@pytest.mark.parametrize("before", ["", "Step Time : 1.0s GPU utilization: 300.0MODEL_TFLOP/s/GPU\n"])
def test_the_tflops_in_a_bridge_line_are_those_of_its_step(field: str, before: str) -> None:
    line = f"[2025-12-19] iteration 2/ 10 | elapsed time per iteration (ms): 500.0 | {field} | lm loss: 1.0 | \n"
    assert steps_of(before + line) == [Step(1, 10, step_time_s=0.5, loss=1.0, tflops_per_gpu=603.2)]


@pytest.mark.parametrize("broken", ["2.5600.5MODEL_TFLOP/s/GPU", "1..2 TFLOP/s/GPU", "1.1.1TFLOP/s/GPU"])
def test_tflops_that_another_rank_broke_are_left_out(broken: str) -> None:
    line = "[2025-12-19] iteration 2/ 10 | elapsed time per iteration (ms): 500.0 | lm loss: 1.0 | "
    assert steps_of(f"{broken}\n{line}\n") == [Step(1, 10, step_time_s=0.5, loss=1.0)]


@pytest.mark.parametrize(
    "line",
    [
        "Training epoch 0, iteration {}/9 | lr: 1 | global_step: 1 | train_step_timing in s: 1.0",
        "[2025-12-19] iteration 1/ {} | elapsed time per iteration (ms): 500.0 |",
    ],
)
def test_impossible_step_numbers_are_ignored(line: str) -> None:
    assert steps_of(line.format("9" * 5000) + "\n") == []


def test_lines_that_are_no_steps() -> None:
    data = """\
GSW: MODEL=llama3.1 FRAMEWORK=nemo MODEL_SIZE=405b JOB_NUM_NODES=72 GPUS_PER_NODE=8 DTYPE=fp8 SYNTHETIC_DATA=True
[NeMo I 2025-04-11 14:48:45 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 50 : Start time: 1744s
[NeMo I 2025-04-11 14:46:18 nemo_logging:393] Global Checkpoint Load : Rank : 0 : Start time : 1744407969.270s
Successfully saved checkpoint from iteration      50 to /nemo_run/checkpoints
Validation: iteration 1/8
Training epoch 0, iteration 3/49
`Trainer.fit` stopped: `max_steps=50` reached.
"""
    parser = StepParser("nemo2")
    assert parser.feed(data.encode()) == []
    assert parser.failure is None


def test_noise_of_other_ranks_does_not_hide_a_step(nemo_line: Callable[..., str]) -> None:
    line = nemo_line(7)
    noisy = [
        "[rank0]: " + line,
        "0: " + line,
        "[NeMo W 2025-04-11 14:48:45 module:1] no line end" + line,
        "x" * 300_000 + line,
        "\rDownloading: 100%|███| 3/3 [00:01<00:00]" + line,
        line.replace("\n", "\r\n"),
        "\x1b[32m" + line.replace("iteration 7", "iteration \x1b[1m7\x1b[0m").replace("\n", "\x1b[0m\n"),
    ]
    for text in noisy:
        assert [(s.index, s.step_time_s) for s in steps_of(text)] == [(7, 2.693)], text[:40]


def test_two_steps_on_one_line_keep_their_values_separate(nemo_line: Callable[..., str]) -> None:
    data = nemo_line(3, 5.5).rstrip("\n") + nemo_line(4, 2.25)
    assert [(s.index, s.step_time_s, s.consumed_samples) for s in steps_of(data)] == [(3, 5.5, None), (4, 2.25, 1280)]


def test_a_value_that_another_rank_broke_is_left_out(nemo_line: Callable[..., str]) -> None:
    torn = nemo_line(3).replace("2.693 |", "2.6[rank3]: hello |")
    assert [(s.index, s.step_time_s, s.loss) for s in steps_of(torn)] == [(3, None, 12.81)]


@pytest.mark.parametrize("seconds", ["0", "0.0", "nan", "inf", "-1.5", "1e300", "1e-300"])
def test_an_impossible_step_time_is_omitted(nemo_line: Callable[..., str], seconds: str) -> None:
    assert [s.step_time_s for s in steps_of(nemo_line(0, seconds))] == [None]


@pytest.mark.parametrize("tflops", ["1e308", "-1e308", "inf", "1e999", "9" * 1000])
def test_impossible_tflops_are_ignored(nemo_line: Callable[..., str], tflops: str) -> None:
    line = nemo_line(0).replace(" | consumed", f" | TFLOPS_per_GPU: {tflops} | consumed")
    assert [(s.index, s.loss, s.tflops_per_gpu) for s in steps_of(line)] == [(0, 12.81, None)]


def test_so_are_those_of_megatron_bridge() -> None:
    assert [s.tflops_per_gpu for s in steps_of(f"{'9' * 1000} TFLOP/s/GPU\n{BRIDGE}")] == [None]


@pytest.mark.parametrize("count", ["1e308", "1e16", "inf"])
def test_an_impossible_step_number_is_ignored(count: str) -> None:
    line = f"Training epoch 1, iteration 3/99 | global_step: {count} | train_step_timing in s: 3.1\n"
    assert steps_of(line) == [Step(3, 100, step_time_s=3.1)]
    assert steps_of(GROK_BAR.replace("=49.00", f"={count}"), "hydra") == []


def test_an_unfinished_line_is_not_trusted(nemo_line: Callable[..., str]) -> None:
    assert steps_of(nemo_line(3).rstrip("\n")) == []


def test_repeated_and_earlier_steps_are_passed_over(nemo_line: Callable[..., str]) -> None:
    data = "".join(map(nemo_line, [0, 1, 1, 0, 2]))
    assert [s.index for s in steps_of(data)] == [0, 1, 2]


def test_a_line_that_never_ends_costs_no_memory(nemo_line: Callable[..., str]) -> None:
    parser = StepParser("nemo2")
    for _ in range(500):
        parser.feed(b"y" * 10_000)
    assert len(parser._text) < 100_000  # only this buffer could grow without limit
    assert [s.index for s in parser.feed(nemo_line(3).encode())] == [3]


@pytest.mark.parametrize("seed", range(5))
def test_torn_utf8_and_byte_by_byte(
    hydra_frame: Callable[..., str], pieces: Callable[[bytes, int], Iterator[bytes]], seed: int
) -> None:
    data = "".join(hydra_frame(i) for i in range(50)).encode()
    parser = StepParser("hydra")
    steps = [step for piece in pieces(data, seed) for step in parser.feed(piece)] + parser.close()
    assert [s.index for s in steps] == list(range(50))
    assert [step._replace(line="") for step in steps] == steps_of(data, "hydra")


def test_colour_sequences_nested_without_end_are_read_quickly() -> None:
    nested = b"\x1b[" * 300_000 + b"m" * 300_000  # took hours when each pass removed one level
    assert [step.index for step in steps_of(nested + b"\n" + NEMO_340B.encode())] == [49]


FRAGMENTS = st.sampled_from(
    [
        *("Training epoch 0, ", "iteration ", " iteration 3/9 | ", "global_step: 4", " | ", "\n", "\r", "\r\n", "] "),
        *("train_step_timing in s: 2.5", "train_step_timing in s=3.5", ", ", "]", " [", "| 4/9 ", "global_step=3.000"),
        *("\x1b[31m", "\x1b", "[0m", "█", "Epoch 0: : ", "[rank0]: ", "elapsed time per iteration (ms): 900.0 |"),
        *(
            "600.5MODEL_TFLOP/s/GPU",
            "RuntimeError: CUDA out of memory",
            "[rank1]: ValueError: x",
            "job exited with code 3",
        ),
        *(
            "All distributed processes registered. Starting with 8 processes",
            "model.config.num_layers = 8",
            "NeMo 2.2.1",
        ),
        *("CANCELLED AT 2025 DUE TO NODE FAILURE", "CANCELLED AT 2025 DUE TO TIME LIMIT", "Restoring states from the"),
        "a:1:1 [0] NCCL INFO Channel 00/0 : 1[0] -> 8[0] [send] via NET/Socket/0",
    ]
)
WHOLE = st.integers(0, 9).flatmap(
    lambda i: st.sampled_from(
        [
            f"Training epoch 0, iteration {i}/9 | global_step: {i} | train_step_timing in s: {i}.5 | lr: 1e-6\n",
            f"\rEpoch 0: : 3%|█| {i + 1}/10 [00:1<0:1, global_step={i}.000, train_step_timing in s={i}.25]",
            f"[2025-12-19] iteration {i + 1}/ 10 | elapsed time per iteration (ms): {i}00.0 | lm loss: 1.0 |\n",
            f"[rank{i}]: RuntimeError: failed {i}\n",
            f"Step Time : 1s GPU utilization: {i}00.5MODEL_TFLOP/s/GPU\n",
            f"All distributed processes registered. Starting with {i} processes\n",
            f"CANCELLED AT 2025 DUE TO TIME LIMIT {i}\n",
            f"model.config.num_layers = {i}\n",
            f"Training epoch 0, iteration {i}/9 | global_batch_size: {i} | reduced_train_loss: nan | lr: 1e-6\n",
        ]
    )
)


@pytest.mark.parametrize("log_format", ["nemo2", "hydra"])
@settings(max_examples=400)
@given(parts=st.lists(st.one_of(FRAGMENTS, WHOLE, st.text(max_size=5)), max_size=30), data=st.data())
def test_any_chunking_gives_the_same_steps_failure_and_statements(
    log_format: LogFormatId, parts: list[str], data: st.DataObject
) -> None:
    log = "".join(parts).encode()
    whole = StepParser(log_format)
    expected = whole.feed(log) + whole.close()
    cuts = data.draw(st.lists(st.integers(0, len(log)), max_size=12))
    edges = [0, *sorted(cuts), len(log)]
    parser = StepParser(log_format)
    steps = [s for a, b in pairwise(edges) for s in parser.feed(log[a:b])] + parser.close()
    assert repr(steps) == repr(expected)  # a loss may be NaN, and NaN != NaN
    assert parser.failure == whole.failure
    assert parser.statements == whole.statements
    assert all(after.index > before.index or after.starts_again for before, after in pairwise(steps))


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_ranks_that_could_not_be_bound_are_counted(piece: int) -> None:
    notes = b"task 3 is not bound to a NUMA node\n[NeMo I] start\n12: task 12 is not bound to a NUMA node\n"
    log = notes + NEMO_340B.encode() + b"task 4 is not bound to a NUMA node\n"
    parser = StepParser("nemo2")
    for at in range(0, len(log), piece):
        parser.feed(log[at : at + piece])
    assert parser.unbound >= {3, 12}


_NUMBERS = st.sampled_from(
    [
        *"0 1 12.81 72972500992 4.491e-06 1.601e+03 1058. .5 -1.5 0.000 nan inf 1e999 1e99 1.2.3 - 1_0 1e5 +3".split(),
        *("9" * 30, "2.69312345678901234567", "", " 2", "2 "),
    ]
)
_USUAL_KEYS = (
    ["lr"],
    ["global_batch_size"],
    ["global_step"],
    ["peak_memory_usage", "max_memory_reserved", None],
    ["memory_allocated", "max_memory_allocated", None],
    ["reduced_train_loss"],
    ["train_step_timing in s"],
    ["TFLOPS_per_GPU", "tflops_per_sec_per_gpu", None],
    ["consumed_samples", None],
)


@st.composite
def _nemo_lines(draw: st.DrawFn) -> str:
    """Draw a progress line of NeMo that differs from the usual format in a few places."""
    keys = [key for names in _USUAL_KEYS if (key := draw(st.sampled_from(names)))]
    if draw(st.integers(0, 5)) == 0:
        keys = draw(st.permutations(keys))
    fields = [f"{key}: {draw(_NUMBERS if draw(st.integers(0, 9)) == 0 else st.just('2.5'))}" for key in keys]
    head = f"Training epoch {draw(st.sampled_from(['0', '0', '00', '1']))}, iteration {draw(st.integers(0, 60))}/49"
    gaps = [draw(st.sampled_from([" | "] * 20 + ["  | ", "|", "\n", " | Training epoch "])) for _ in fields]
    text = head + "".join(map("".join, zip(gaps, fields, strict=True)))
    end = draw(st.sampled_from([None, None, None, 90]))
    return text[:end] + draw(st.sampled_from(["\n", "\n", "\r", " |\n", "x\n"]))


@settings(deadline=None, max_examples=300)
@given(st.lists(_nemo_lines(), min_size=1, max_size=4).map("".join))
def test_a_usual_line_is_read_as_any_other_is(log: str) -> None:
    found = steps_of(log)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nemo2, "USUAL_LINE", re.compile(rb"(?!)"))
        assert repr(found) == repr(steps_of(log))  # a loss may be NaN, and NaN != NaN


@pytest.mark.parametrize("before", ["| a | b |\n" * 3, "iteration | iteration |\n", "12/12 |", " iteration 7/49 \n"])
def test_other_bars_hide_no_step(before: str) -> None:
    log = before + "[x] iteration" + " " * 90 + "48/ 49 | lm loss: 1.0 |\n" + before + NEMO_340B
    assert [step.index for step in steps_of(log)] == [47, 49]


def test_the_lines_of_both_versions_of_nemo_are_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing a line takes three times as long if its format is not the usual one."""
    monkeypatch.setattr(nemo2, "nemo_step", None)
    newer = NEMO_340B.replace("peak_memory_usage", "max_memory_reserved").replace("memory_all", "max_memory_all")
    newer = newer.replace(" | consumed", " | TFLOPS_per_GPU: 1.601e+03 | consumed")
    first = NEMO_340B.rpartition(" | consumed")[0] + "\n"
    assert [len(steps_of(line)) for line in (NEMO_340B, newer, first)] == [1, 1, 1]


def test_a_fact_is_quoted_from_its_first_line_however_the_log_is_cut() -> None:
    lines = [
        "GPUs of node cn001: 8 × NVIDIA H100 80GB HBM3\n",
        "You are using a CUDA device ('NVIDIA H100 80GB HBM3') that has Tensor Cores.\n",
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n",
    ]
    whole, by_line = StepParser("nemo2"), StepParser("nemo2")
    whole.feed("".join(lines).encode())
    for line in lines:
        by_line.feed(line.encode())
    assert [one.line for one in whole.statements] == [lines[0].strip()]
    assert whole.statements == by_line.statements
