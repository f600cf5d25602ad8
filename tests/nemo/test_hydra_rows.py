"""Every row of the Hydra recipes, composed by Hydra itself from the files and overrides of a run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from llmb_tui.catalog.load import load_presets
from llmb_tui.launch.spec import LaunchSpec
from tests.launch.hydra_cases import (
    ALLOWED,
    differing,
    flat,
    given,
    golden,
    overlaps_of_virtual_stages,
    without_virtual_stages,
)
from tests.nemo.environment import VERSIONS, command


def composed(specs: list[LaunchSpec], folder: Path) -> list[dict[str, Any]]:
    """Configuration that Hydra passes to each run's training, by dotted field."""
    asked = []
    for number, spec in enumerate(specs):
        name, text, overrides = given(spec)
        path = folder / str(number) / name
        path.parent.mkdir()
        path.write_text(text)
        asked.append([str(path.parent), name, overrides])
    python, environment = command(VERSIONS[0])
    program = str(Path(__file__).with_name("compose.py"))
    done = subprocess.run(
        [*python, program], input=json.dumps(asked), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [flat(config) for config in json.loads(done.stdout)]


def test_hydra_makes_the_published_configuration_of_every_row(tmp_path: Path) -> None:
    cases, catalog = golden(), load_presets()
    ours = composed([row.spec(catalog) for row, _ in cases.values()], tmp_path)
    assert len(ours) == 34
    for (name, (row, published)), fields in zip(cases.items(), ours, strict=True):
        assert differing(fields, published) == set(ALLOWED[row.preset]), name


def test_hydra_accepts_the_overrides_for_a_pipeline_without_virtual_stages(tmp_path: Path) -> None:
    for fields in composed(without_virtual_stages(load_presets()), tmp_path):
        assert fields["model.virtual_pipeline_model_parallel_size"] is None
        assert overlaps_of_virtual_stages(fields) == [False, False, True]
