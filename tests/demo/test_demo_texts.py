"""Pure parts of the demo cluster: durations, host lists, log lines, step times, mounts."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.demo.slurm import notation
from llmb_tui.demo.slurm.pyxis import place
from llmb_tui.demo.training import hydra_bar, nemo2_line, step_seconds, training


@pytest.mark.parametrize(("text", "minutes"), [("1", 1), ("00:00:01", 1), ("4:00:00", 240), ("1-02:03:04", 1564)])
def test_time_limits(text: str, minutes: int) -> None:
    assert notation.minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "x", "1:2", "1:2:3:4", "1-", "1.5"])
def test_invalid_time_limits(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        notation.minutes(text)


@pytest.mark.parametrize(
    ("seconds", "short", "full"),
    [
        (0, "0:00", "00:00:00"),
        (89.9, "1:29", "00:01:29"),
        (14400, "4:00:00", "04:00:00"),
        (36000, "10:00:00", "10:00:00"),
        (90061, "1-01:01:01", "1-01:01:01"),
    ],
)
def test_durations(seconds: float, short: str, full: str) -> None:
    assert (notation.short(seconds), notation.full(seconds)) == (short, full)


@given(st.sets(st.integers(1, 999)))
def test_a_host_list_expands_to_its_hosts(numbers: set[int]) -> None:
    names = [f"demo{number:03d}" for number in sorted(numbers)]
    assert notation.expand(notation.compress(names)) == names


def test_host_lists() -> None:
    assert notation.compress(["demo001", "demo002", "demo004"]) == "demo[001-002,004]"
    assert notation.compress(["demo007"]) == "demo007"
    assert notation.expand("a[1-3],b,c[08-10]") == ["a1", "a2", "a3", "b", "c08", "c09", "c10"]


@given(st.text("a1[-,]x"))
def test_any_text_can_be_expanded_as_a_host_list(text: str) -> None:
    assert all(notation.expand(text))


def test_a_genuine_line_of_nemo_2() -> None:
    line = (
        "Training epoch 0, iteration 49/49 | lr: 4.491e-06 | global_batch_size: 256 | global_step: 49"
        " | peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | reduced_train_loss: 12.81"
        " | train_step_timing in s: 2.693 | consumed_samples: 12800"
    )
    values = {
        "lr": 4.5e-5 * 50 / 501,
        "global_batch_size": 256,
        "global_step": 49,
        "peak_memory_usage": 72972500992,
        "memory_allocated": 34466545664,
        "reduced_train_loss": 12.8123,
        "train_step_timing in s": 2.69345,
        "consumed_samples": 12800.0,
    }
    assert nemo2_line(49, 50, values) == line
    assert (
        nemo2_line(0, 1, {"TFLOPS_per_GPU": 1600.74}) == "Training epoch 0, iteration 0/0 | TFLOPS_per_GPU: 1.601e+03"
    )


def test_genuine_bars_of_nemo_1() -> None:
    values = {"reduced_train_loss": 11.7, "global_step": 49.0, "consumed_samples": 12600.0}
    assert hydra_bar(50, 50, 986.0, {"v_num": "gjbq", **values, "train_step_timing in s": 12.8}) == (
        "Epoch 0: : 100%|██████████| 50/50 [16:26<00:00, v_num=gjbq, reduced_train_loss=11.70, global_step=49.00,"
        " consumed_samples=12600.0, train_step_timing in s=12.80]"
    )
    values = {"reduced_train_loss": 0.18612, "global_step": 49.0, "consumed_samples": 51200.0}
    assert hydra_bar(50, 50, 1402.0, {**values, "train_step_timing in s": 24.003}) == (
        "Epoch 0: : 100%|██████████| 50/50 [23:22<00:00, reduced_train_loss=0.186, global_step=49.00,"
        " consumed_samples=51200.0, train_step_timing in s=24.00]"
    )
    assert hydra_bar(9, 50, 3700.0, {}) == "Epoch 0: :  18%|█▊        | 9/50 [1:01:40<4:40:55]"


def test_step_times_vary_around_the_expected_step_time() -> None:
    for seed in ("1", "2", "37"):
        steady = [step_seconds(seed, index, 2.0) for index in range(3, 50)]
        assert 2.0 * 0.998 < statistics.median(steady) < 2.0 * 1.017
        assert 0.002 < statistics.stdev(steady) / 2.0 < 0.007
        assert step_seconds(seed, 0, 2.0) > 20
        assert step_seconds(seed, 1, 2.0) > 2.3
        assert steady == [step_seconds(seed, index, 2.0) for index in range(3, 50)]
    assert step_seconds("1", 9, 2.0) != step_seconds("2", 9, 2.0)


def plan(estimate: dict[str, Any] | None) -> dict[str, Any]:
    selection = {"workload": "w", "release": "25.04", "size": "s", "gpu": "h100", "dtype": "bf16", "scale": 8}
    return {"selection": selection, "nodes": 1, "parallelism": {"gbs": 16}, "estimate": estimate, "memory": None}


def test_the_step_time_comes_from_the_plan_or_from_its_flops() -> None:
    flops = {"model_flops_per_sample": 1e14, "peak_tflops": 1000}
    assert training(plan({"step_time_s": 3.5, **flops}), {}).step_s == 3.5
    assert training(plan({"step_time_s": None, **flops}), {}).step_s == pytest.approx(16 * 1e14 / (8 * 1e15 * 0.4))
    assert training(plan(None), {}).step_s == 5.0


def test_the_steps_of_an_override_go_before_those_of_the_plan() -> None:
    assert training({**plan(None), "steps": 7}, {}).steps == 7
    assert training({**plan(None), "steps": 7}, {"trainer.max_steps": "20"}).steps == 20


def test_paths_in_a_container_are_found_through_its_mounts() -> None:
    mounts = [("/shared/task", "/nemo_run"), ("/shared/cfg", "/nemo_run/cfg/"), ("/data", "/data")]
    assert place("/nemo_run/configs/plan.json", mounts) == "/shared/task/configs/plan.json"
    assert place("/nemo_run", mounts) == "/shared/task"
    assert place("/nemo_run/cfg/x", mounts) == "/shared/cfg/x"
    assert place("/nemo_runs", mounts) == ""
