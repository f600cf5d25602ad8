"""Every log format is registered; a new format needs a module, an id and a line of the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.watch.log_formats.registry import LOG_FORMATS
from tests.kit.program_copy import ROOT, ProgramCopy

TOY = Path(__file__).parent / "toy" / "stopwatch.py"
TIMES_S = [5.0, *[2.0] * 48, 1.98]
LOG = "".join(f"step {at} of 50 took {time} s, loss {12 - at / 10:.2f}\n" for at, time in enumerate(TIMES_S, 1))


def test_every_id_of_a_log_format_is_registered() -> None:
    assert set(LOG_FORMATS) == set(get_args(LogFormatId))


def test_the_log_of_a_new_format_is_read_and_judged(tmp_path: Path) -> None:
    program = ProgramCopy(tmp_path)
    program.add(TOY, "watch/log_formats/stopwatch.py")
    program.edit("catalog/recipe.py", 'Literal["nemo2", "hydra"]', 'Literal["nemo2", "hydra", "stopwatch"]')
    program.edit("watch/log_formats/registry.py", "(NEMO2, HYDRA)", "(NEMO2, HYDRA, STOPWATCH)")
    first = "from llmb_tui.watch.log_formats.nemo2 import NEMO2\n"
    added = "from llmb_tui.watch.log_formats.stopwatch import STOPWATCH\n"
    program.edit("watch/log_formats/registry.py", first, first + added)
    presets = tmp_path / "config" / "presets"
    presets.mkdir(parents=True)
    preset = (ROOT / "presets/nemotron4-25.04.toml").read_text()
    assert preset.count('kind = "nemo2"') == 1
    preset = preset.replace('kind = "nemo2"', 'kind = "stopwatch"').replace('release = "25.04"', 'release = "99.01"', 1)
    (presets / "toy.toml").write_text(preset)
    (presets / "constraints").symlink_to(ROOT / "presets/constraints")
    (log := tmp_path / "training.out").write_text(LOG)

    (unknown,) = json.loads(program("results", str(log), "--json"))
    assert (unknown["steps_done"], unknown["step_time_s"]) == (50, 1.98)
    selection = "-w nemotron4@99.01 -s 15b --gpu h100 -d fp8 --scale 64".split()
    (judged,) = json.loads(program("results", str(log), *selection, "--json"))
    assert judged["verdict"]["result"] == "PASS"
    assert judged["result"]["loss"]["falls"]
