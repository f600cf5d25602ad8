"""Parsing of the cluster's answers about install steps, and the pace of a download."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.errors import LlmbError
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.step_state import read_probes, state_of, step_rate

STEP = InstallStep("image-a", "Container image a", ("/i/a.sqsh",), "true", (), size="5–60 GB", image="a").missing
PLAIN = InstallStep("plain", "Directories", ("/i",), "true", ()).missing


def running(cached: int = 0, written: int = 0, layers: int = 0, of: int = 0) -> str:
    return f"= running {written} {cached} {layers} {of} -\n|[INFO] Downloading {of} missing layers...\n"


def test_a_download_reports_bytes_layers_and_the_remaining_time() -> None:
    pace, total = step_rate(), 20_000_000_000
    for now, cached in ((100.0, 0), (110.0, 2_000_000_000)):
        state = state_of(STEP, read_probes(running(cached, 0, 7, 66), 1)[0], total, pace, now)
    assert state.size == "2 GB of 20 GB downloaded, 6 of 66 layers, about 2 min left"
    assert (state.bytes_so_far, state.bytes_of, state.seconds_left) == (2_000_000_000, total, 90.0)
    assert state.detail == "[INFO] Downloading 66 missing layers..."


def test_no_remaining_time_is_invented() -> None:
    pace = step_rate()
    for now in (100.0, 130.0):
        state = state_of(STEP, read_probes(running(5_000_000_000, 0, 7, 66), 1)[0], None, pace, now)
    assert state.size == "5 GB downloaded, 6 of 66 layers"
    assert state.seconds_left is None


def test_writing_the_image_reports_how_much_is_written() -> None:
    state = state_of(
        STEP, read_probes(running(9_000_000_000, 3_100_000_000, 67, 66), 1)[0], 9_000_000_000, step_rate(), 0.0
    )
    assert state.size == "3.1 GB written"
    assert state.bytes_of is None


def test_a_waiting_job_has_a_reason_and_the_time_since_it_may_start() -> None:
    probe = read_probes("= waiting 0 0 0 0 17\n?Resources|2026-11-21T12:00:00\n", 1)[0]
    state = state_of(STEP, probe, None, step_rate(), 0.0)
    assert state.status == "running"
    assert state.detail.startswith("Job 17 is waiting in the queue: ")
    assert state.detail.endswith("Slurm expects it to start at 2026-11-21T12:00:00.")


def test_a_greeting_before_the_answer_is_ignored() -> None:
    greeting = "==================\n= Welcome to Eos =\n= 3 nodes are down\n==================\n\n"
    first, second = read_probes(f"{greeting}= done 7 0 0 0 -\n{running(5)}", 2)
    assert (first.state, first.written, first.log) == ("done", 7, ())
    assert (second.state, second.cached, len(second.log)) == ("running", 5, 1)
    with pytest.raises(LlmbError, match="could not be checked"):
        read_probes(greeting, 1)


def test_a_job_that_ended_without_a_message_is_reported() -> None:
    state = state_of(
        STEP, read_probes("= gone 0 0 0 0 17\n|[INFO] Extracting image layers...\n", 1)[0], None, step_rate(), 0.0
    )
    assert (state.status, state.detail) == ("failed", "[INFO] Extracting image layers...")
    assert state.reason == "Job 17 of this step ended without a message."
    assert "install again" in state.fix


def test_a_small_step_has_no_sizes() -> None:
    assert state_of(PLAIN, read_probes(running(5, 5), 1)[0], None, step_rate(), 0.0).size == ""


@pytest.mark.parametrize("said", ["", "no such thing", "= running 1 2 3\n", "= flying 0 0 0 0 -\n"])
def test_another_answer_is_refused(said: str) -> None:
    with pytest.raises(LlmbError, match="could not be checked"):
        read_probes(said, 1)


def test_the_remaining_time_is_computed_from_gits_progress() -> None:
    pace = step_rate()
    for now, words in ((100.0, "10% (100/1000), 1.00 MiB | 1.00 MiB/s"), (130.0, "40% (400/1000), 9.00 MiB")):
        probe = read_probes(f"= running 0 0 0 0 7\n|Receiving objects:  {words}\n", 1)[0]
        state = state_of(PLAIN, probe, None, pace, now)
    assert state.detail == "Job 7: Receiving objects:  40% (400/1000), 9.00 MiB"
    assert (state.size, state.seconds_left) == ("40 %, about 1 min left", 60.0)


SPINNER = "Building wheel for mamba-ssm (setup.py) ... -\b \b\\\b \b|\b \b/"


@pytest.mark.parametrize(
    ("log", "detail"),
    [
        (
            ["Installing collected packages: a, b", "  \x1b[?25l  ", "\\ | / -", "━━━━"],
            "Installing collected packages: a, b",
        ),
        ([SPINNER], "Building wheel for mamba-ssm (setup.py) ... /"),
        (["Collecting x" + "y" * 4000], "Collecting x" + "y" * 147 + "…"),
        (["\x1b[31mERROR\x1b[0m: it\tbroke\x07"], "ERROR: it    broke\N{REPLACEMENT CHARACTER}"),
        (["\b\b", "| /"], ""),
        ([], ""),
    ],
)
def test_progress_is_a_single_clean_line_of_bounded_length(log: list[str], detail: str) -> None:
    text = "".join(f"|{line}\n" for line in log)
    state = state_of(PLAIN, read_probes(f"= running 0 0 0 0 -\n{text}", 1)[0], None, step_rate(), 0.0)
    assert state.detail == detail


def test_the_line_with_the_reason_has_a_bounded_length_too() -> None:
    probe = read_probes("= failed 0 0 0 0 -\n|strange " + "x" * 4000 + "\n|\\ |\n", 1)[0]
    state = state_of(PLAIN, probe, None, step_rate(), 0.0)
    assert state.detail.startswith("strange xxx")
    assert len(state.detail) == 400


def test_a_long_line_of_a_log_is_seen_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Collecting a\nInstalling collected packages: " + "package, " * 1000 + "\n\n \r")
    script = remote_text("look.sh") + f"ends {log}\n"
    lines = subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line[:32] for line in lines] == ["|Collecting a", "|Installing collected packages: "]
    assert len(lines[1]) == 1001
