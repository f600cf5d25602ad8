"""A program that composes the configurations of Hydra commands and prints each of them as JSON.

On stdin: a JSON list of [folder, name of the configuration file, overrides]. Started with NeMo's Python.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf


def composed(folder: str, name: str, overrides: list[str]) -> Any:
    """Configuration as the training gets it, with resolved interpolations."""
    with initialize_config_dir(config_dir=folder, version_base=None):
        return OmegaConf.to_container(compose(config_name=name, overrides=overrides), resolve=True)


if __name__ == "__main__":
    json.dump([composed(*asked) for asked in json.load(sys.stdin)], sys.stdout)
