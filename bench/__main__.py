"""`python -m bench [NAME…]`: every benchmark of this directory, or those named, one after the other."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def main(names: list[str]) -> None:
    """Calls `main()` of each module."""
    found = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    for name in names or [name for name in found if not name.startswith("_")]:
        print(f"== {name}")
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
