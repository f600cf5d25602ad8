"""Lets NeMo train on a CPU, in every Python that has this folder first on PYTHONPATH. For tests only; never shipped.

NeMo and Megatron Core put every tensor on a GPU. This module replaces their calls of `torch.cuda` with calls for the
CPU, right after the import of the calling module. The computation is the same; Transformer Engine, FP8, NCCL and GPUs
are not tested.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def _torch(torch: Any) -> None:
    from torch.overrides import TorchFunctionMode

    cpu = torch.device("cpu")

    class OnCpu(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, _: Any, values: Any = (), named: Any = None) -> Any:
            named = named or {}
            if str(named.get("device", "")).startswith("cuda"):
                named = named | {"device": cpu}
            return function(*values, **named)

    OnCpu().__enter__()  # for as long as Python runs
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    torch.cuda.current_device = lambda: cpu
    torch.cuda.synchronize = lambda *_: None


def _random(module: Any) -> None:
    """Give each rank of a model its usual random numbers for dropout: without a GPU they have no generator."""

    def fork(*_: object) -> AbstractContextManager[None]:
        return nullcontext()

    module.CudaRNGStatesTracker.fork = fork


def _mock_data(module: Any) -> None:
    """NeMo passes the flag for a mask in place of the seed; without Transformer Engine a mask is needed."""
    make = module._MockGPTDataset
    module._MockGPTDataset = lambda *values: make(*values[:-1], create_attention_mask=values[-1])


def _timers(module: Any) -> None:
    """Rank 0 alone gathers an empty list of times after each step. Gloo counts that as a call that the other ranks did
    not make, and hangs in the next call of all ranks."""
    gather = module.dist_all_gather_func
    module.dist_all_gather_func = lambda target, source: gather(target, source) if source.numel() else None


def _checkpoint_writer(module: Any) -> None:
    """Current PyTorch requires more arguments than Megatron Core 0.11 passes; 0.13 passes them."""
    from torch.distributed.checkpoint.filesystem import SerializationFormat, _StorageWriterTransforms

    write = module._write_item
    if not hasattr(module, "_StorageWriterTransforms"):
        first, last = _StorageWriterTransforms(), SerializationFormat.TORCH_SAVE
        module._write_item = lambda *values: write(first, *values, last)


def _checkpoint_reader(module: Any) -> None:
    """Keep loaded tensors on their device; NeMo moves them to the rank's GPU."""
    module._fix_tensors_device = lambda checkpoint: checkpoint


AFTER: dict[str, Callable[[Any], None]] = {
    "torch": _torch,
    "megatron.core.tensor_parallel.random": _random,
    "megatron.core.timers": _timers,
    "megatron.core.dist_checkpointing.strategies.filesystem_async": _checkpoint_writer,
    "nemo.collections.llm.gpt.data.mock": _mock_data,
    "nemo.lightning.io.pl": _checkpoint_reader,
}
"""Change that is made after the import of each module."""


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in AFTER or (spec := PathFinder.find_spec(name, path, target)) is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def run_and_change(module: ModuleType) -> None:
            run(module)
            AFTER[name](module)

        spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


def _run_the_hidden_one() -> None:
    """Run the next module of this name: Python runs only the first that it finds, which is this one."""
    here = Path(__file__).resolve().parent
    spec = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if Path(folder).resolve() != here])
    if spec and spec.loader:
        spec.loader.exec_module(module_from_spec(spec))


sys.meta_path.insert(0, _Finder)
_run_the_hidden_one()
