"""Stands where NVIDIA's `modelopt` would, in every Python that has this folder on PYTHONPATH.

NeMo imports modelopt together with its recipes, for quantisation and distillation, which a pretraining run does not
use; modelopt itself asks for GPU packages. Any of its modules can be imported and has every name, as a MagicMock.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest.mock import MagicMock

ABSENT = "modelopt"


class _Module(ModuleType):
    def __getattr__(self, name: str) -> MagicMock:
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - importlib's signature
        if name.partition(".")[0] != ABSENT:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing."""


sys.meta_path.append(_Finder())
