"""NVIDIA's own rules on logs of each format. The expected values were calculated without this program."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from llmb_tui.analysis.upstream_rules import (
    UpstreamResult,
    is_parsed_log,
    llmb_run,
    parse_train_timing,
)
from llmb_tui.watch.training_log import TrainingLog, newest_of_jobs

GOLDEN = Path(__file__).parents[1] / "watch" / "golden"
NAME = "log-acct.task_48123_0.out"
NEMO = (
    "Training epoch 0, iteration {at}/{last} | lr: 4.491e-06 | global_batch_size: 256 | global_step: {at} | "
    "peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | reduced_train_loss: 12.81 | "
    "train_step_timing in s: {s} | TFLOPS_per_GPU: {tflops} | consumed_samples: 12800\n"
)
BRIDGE = (
    "Step Time : 20.28s GPU utilization: {tflops}MODEL_TFLOP/s/GPU\n"
    " [2025-12-19 10:49:15] iteration {at:8d}/{last:8d} | consumed samples:          128 | elapsed time per iteration "
    "(ms): {ms} | learning rate: 3.000000E-05 | global batch size:   128 | lm loss: 1.258695E+01 | loss scale: 1.0 | "
    "grad norm: {norm} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
BAR = (
    "Epoch 0: : 100%|██████████| {count}/50 [16:26<00:00, v_num=gjbq, reduced_train_loss=11.70, global_step={at}.0, "
    "consumed_samples=12600.0, train_step_timing in s=12.80]\r"
)


def nemo(first: int = 0, last: int = 49, *without: int, total: int = 49) -> str:
    """2.690 s at iteration 35 and a millisecond more at each later one; 9.9 s before; TFLOPS 1601 and one more each."""
    return "GSW: model\n" + "".join(
        NEMO.format(
            at=index,
            last=total,
            s=f"{2.690 + 0.001 * (index - 35):.3f}" if index >= 35 else 9.9,
            tflops=f"{1601 + index - 35:.3e}",
        )
        for index in range(first, last + 1)
        if index not in without
    )


def bridge(norm: str = "10.275", last: int = 50) -> str:
    """20,000 ms at iteration 35 and 100 more at each later one; 99,000 before."""
    return "".join(
        BRIDGE.format(
            at=index, last=50, ms=20000 + 100 * (index - 35) if index >= 35 else 99000, tflops=700 + index, norm=norm
        )
        for index in range(1, last + 1)
    )


def timing(text: str | bytes, name: str = NAME) -> UpstreamResult | None:
    return parse_train_timing(io.BytesIO(text if isinstance(text, bytes) else text.encode()), name)


def by_llmb(text: str | bytes, framework: str = "") -> UpstreamResult:
    return llmb_run(io.BytesIO(text if isinstance(text, bytes) else text.encode()), framework)


def deviations(result: UpstreamResult) -> tuple[float | None, float | None]:
    return result.deviation(result.step_time_s), result.deviation(result.tflops_per_gpu)


def test_both_rules_average_over_the_window_and_differ_in_the_deviation() -> None:
    """(2.690 + … + 2.699) / 10 = 2.6945; squares of 4.5, 3.5 … ms sum to 82.5; √8.25 = 2.8723, √(82.5 / 9) = 3.0277."""
    script, llmb = timing(nemo()), by_llmb(nemo())
    assert script is not None
    assert (script.status, llmb.status) == ("Success", "success")
    for result, stdev_s, tflops_stdev in ((script, 0.0028723, 2.8723), (llmb, 0.0030277, 3.0277)):
        assert result.step_time_s is not None
        assert result.tflops_per_gpu is not None
        assert (result.step_time_s.count, result.tflops_per_gpu.count) == (10, 10)
        assert result.step_time_s.mean == pytest.approx(2.6945)
        assert result.tflops_per_gpu.mean == pytest.approx(1605.5)
        assert deviations(result) == pytest.approx((stdev_s, tflops_stdev), rel=1e-4)


def test_only_the_rule_of_llmb_run_reports_a_missing_iteration() -> None:
    """Without 2.694 of iteration 39: (26.945 − 2.694) / 9 = 2.694556."""
    script, llmb = timing(nemo(0, 49, 39)), by_llmb(nemo(0, 49, 39))
    assert script is not None
    assert script.step_time_s is not None
    assert (script.status, script.step_time_s.count) == ("Success", 9)
    assert script.step_time_s.mean == pytest.approx(2.6945556)
    assert (llmb.status, llmb.highest) == ("incomplete", 44)


def test_a_run_that_ended_inside_the_window_or_before_the_last_iteration() -> None:
    script, llmb = timing(nemo(0, 40)), by_llmb(nemo(0, 40))
    assert (script, llmb.status) == (UpstreamResult("parse_train_timing", "Failed", highest=40), "incomplete")
    script, llmb = timing(nemo(0, 46)), by_llmb(nemo(0, 46))  # iterations 47 to 49 are missing
    assert script is not None
    assert (script.status, llmb.status) == ("Success", "incomplete")


def test_another_number_of_steps_is_left_out_by_the_script_alone() -> None:
    text = nemo(0, 99, total=99)
    assert timing(text) is None
    assert by_llmb(text).status == "success"


def test_a_repeated_line_counts_twice() -> None:
    """Iteration 44, 2.699 s, twice: (26.945 + 2.699) / 11 = 2.694909."""
    text = nemo() + nemo(44, 44)
    script, llmb = timing(text), by_llmb(text)
    for result in (script, llmb):
        assert result is not None
        assert result.step_time_s is not None
        assert result.step_time_s.count == 11
        assert result.step_time_s.mean == pytest.approx(2.6949091)


# A complete log, with one line repeated, and the highest time and TFLOPS.
_LOGS = {
    "NeMo": (nemo(), nemo(39, 39), (2.699, 1610)),
    "Megatron-Bridge": (bridge(), BRIDGE.format(at=39, last=50, ms=20400, tflops=739, norm="1.0"), (20.9, 744)),
}


@pytest.mark.parametrize("many", ["9" * 5000, "9" * 400])
@pytest.mark.parametrize(
    ("of", "number", "behind"),
    [
        *(("NeMo", number, behind) for number, behind in (("39", "/"), ("2.694", ""), ("1.605e+03", ""))),
        *(("Megatron-Bridge", number, behind) for number, behind in (("39", "/"), ("20400", " |"), ("739", "MODEL"))),
    ],
)
def test_a_number_that_nothing_can_have_is_passed_over(of: str, number: str, behind: str, many: str) -> None:
    log, line, highest = _LOGS[of]
    assert number + behind in line
    odd = log + line.replace(number + behind, many + behind)
    for result in (timing(odd), by_llmb(odd)):
        assert result is not None
        assert result.step_time_s is not None
        assert result.tflops_per_gpu is not None
        assert (result.step_time_s.high, result.tflops_per_gpu.high) == highest


def test_a_time_with_an_exponent_that_no_number_holds_is_passed_over_by_llmb_run() -> None:
    """The script does not understand an exponent in a time, and reads only its leading 1."""
    odd = nemo() + nemo(39, 39).replace("2.694", "1e999")
    script, llmb = timing(odd), by_llmb(odd)
    assert script is not None
    assert script.step_time_s is not None
    assert llmb.step_time_s is not None
    assert (script.step_time_s.low, llmb.step_time_s.low, llmb.step_time_s.high) == (1.0, 2.69, 2.699)


def test_a_long_line_of_digits_does_not_slow_the_rules_down() -> None:
    odd = "7" * 300_000 + "\n"
    assert by_llmb(odd + bridge(), "megatron_bridge").status == "success"
    assert timing(odd + bridge()) == timing(bridge())


def test_a_log_of_megatron_bridge() -> None:
    """Mean 20.45 s; 82.5 squares of 100 ms: √(82.5 / 9) × 0.1 = 0.30277 by both. TFLOPS 735 to 744, mean 739.5."""
    script, llmb = timing(bridge()), by_llmb(bridge())
    assert script is not None
    assert (script.status, llmb.status) == ("Success", "success")
    for result in (script, llmb):
        assert result.step_time_s is not None
        assert result.tflops_per_gpu is not None
        assert (result.step_time_s.mean, result.tflops_per_gpu.mean) == pytest.approx((20.45, 739.5), rel=1e-4)
        assert deviations(result) == pytest.approx((0.30277, 3.0277), rel=1e-4)
    assert [result and result.status for result in (timing(bridge("nan")), by_llmb(bridge("nan")))] == [
        "Invalid", "invalid_grad_norm",
    ]  # fmt: skip
    assert by_llmb(bridge(last=49)).status == "incomplete"


def test_neither_reads_the_bars_of_the_hydra_recipes() -> None:
    bars = "".join(BAR.format(at=index, count=index + 1) for index in range(50)) + "\n"
    assert timing(bars) is None  # it contains none of the script's words
    assert timing("model\n" + bars) == UpstreamResult("parse_train_timing", "Failed")
    assert by_llmb(bars).status == "unsupported_framework"


@pytest.mark.parametrize("name", ["nemo-2.2.1", "nemo-2.4.0-flops", "nemo-2.2.1-save", "nemo-2.2.1-load"])
def test_genuine_logs_end_before_the_window(name: str) -> None:
    log = (GOLDEN / f"{name}.log").read_bytes()
    assert timing(log) is None
    assert by_llmb(log).status == "no_data"


def test_genuine_logs_that_failed_early() -> None:
    log = (GOLDEN / "nemo-2.2.1-no-checkpoint.log").read_bytes()
    assert timing(log) == UpstreamResult("parse_train_timing", "Failed")
    assert timing(log, "sbatch_acct.task_48123.out") is None
    assert by_llmb(log, "nemo2").status == "no_data"


def test_which_files_and_which_start_count() -> None:
    names = ["log-a.t_7_0.out", "log-a.t_7_2.out", "log-a.t_7_10.out", "sbatch_a.t_7.out", "slurm-7.out", "slurm-8.out"]
    logs = [TrainingLog(f"/runs/{name}", name, io.BytesIO) for name in names]
    assert [(log.name, earlier) for log, earlier in newest_of_jobs(logs)] == [
        ("log-a.t_7_10.out", ("slurm-7.out", "log-a.t_7_0.out", "log-a.t_7_2.out")),
        ("sbatch_a.t_7.out", ()),
        ("slurm-8.out", ()),
    ]
    assert [is_parsed_log(name) for name in (*names, "log-t_nccltrace_7_0.out", "log-t_7_0.err")] == [True] * 6 + [
        False, False,
    ]  # fmt: skip
