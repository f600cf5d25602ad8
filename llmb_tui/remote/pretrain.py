"""Entry script of the NeMo 2 containers: build NeMo's own pretraining recipe, apply a plan to it, run it.

    python pretrain.py launch.json

One Slurm task for each GPU runs it. It prints NeMo's version and the resolved configuration before it trains.

Applied to the recipe in performance mode: nodes, GPUs, steps, parallelism, batch, sequence length, layers, precision,
synthetic data with a tokenizer that needs no download, no validation, no checkpoint.
Not applied yet, so that the published step time may not be reached: the userbuffers configuration for a precision or
GPU type other than the recipe's own, CUDA graphs, and what later containers added (fused cross entropy,
precision-aware optimizer, no gradient checks, binding to NUMA nodes). No checkpoints, no profiling. Nothing of this
has run on a GPU yet.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Launch:
    """What `launch.json` holds: exactly these keys."""

    module: str
    """Module under `nemo.collections.llm.recipes`."""
    dtype: str
    """`bf16` or `fp8`."""
    fp8_scaling: str
    """How fp8 is scaled: `delayed` or `current`."""
    nodes: int
    gpus_per_node: int
    steps: int
    vocab: int
    tp: int
    pp: int
    cp: int
    ep: int
    vp: int | None
    mbs: int
    gbs: int
    seq_len: int
    layers: int
    embedding_in_pipeline: bool
    """Embedding and loss count as a layer each when layers are divided over the pipeline."""

    @property
    def dp(self) -> int:
        """Data parallel size."""
        return self.nodes * self.gpus_per_node // (self.tp * self.pp * self.cp)


def read_launch(text: str) -> Launch:
    """Read the JSON text. Raises ValueError naming keys that are unknown or missing, and values of a wrong kind."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    kinds = {field.name: str(field.type) for field in fields(Launch)}
    if values.keys() != kinds.keys():
        unknown, missing = sorted(values.keys() - kinds.keys()), sorted(kinds.keys() - values.keys())
        raise ValueError(f"unknown keys {unknown}, missing keys {missing}")
    for name, kind in kinds.items():
        value = values[name]
        if type(value).__name__.replace("NoneType", "None") not in kind.split(" | ") or (kind == "int" and value < 1):
            raise ValueError(f"{name} is {value!r}, not {kind}")
    launch = Launch(**values)
    if not launch.module.isidentifier():
        raise ValueError(f"module is {launch.module!r}, not a module's name")
    if launch.dtype not in ("bf16", "fp8") or launch.fp8_scaling not in ("delayed", "current"):
        raise ValueError(f"dtype {launch.dtype!r} with {launch.fp8_scaling!r} scaling is unknown")
    return launch


def build(launch: Launch) -> Any:
    """NeMo's recipe with the plan applied. NeMo's configuration objects refuse a name that they do not know."""
    module = importlib.import_module(f"nemo.collections.llm.recipes.{launch.module}")
    recipe = module.pretrain_recipe(
        num_nodes=launch.nodes, num_gpus_per_node=launch.gpus_per_node, performance_mode=True
    )
    _apply_trainer(recipe, launch)
    _apply_model_and_data(recipe, launch)
    if launch.dtype == "fp8":
        recipe.trainer.plugins = _fp8(launch)
    recipe.trainer.plugins.grad_reduce_in_fp32 = False  # replacing the plugin loses what performance mode set
    return recipe


def _apply_trainer(recipe: Any, launch: Launch) -> None:
    trainer, strategy = recipe.trainer, recipe.trainer.strategy
    trainer.max_steps = trainer.val_check_interval = launch.steps
    trainer.limit_val_batches = 0
    trainer.log_every_n_steps = 1
    trainer.enable_checkpointing = trainer.logger = False
    recipe.log.ckpt = recipe.log.tensorboard = None
    strategy.tensor_model_parallel_size = launch.tp
    strategy.pipeline_model_parallel_size = launch.pp
    strategy.context_parallel_size = launch.cp
    strategy.expert_model_parallel_size = launch.ep
    strategy.virtual_pipeline_model_parallel_size = launch.vp
    strategy.sequence_parallel = launch.tp > 1
    for callback in trainer.callbacks:
        if callback.__fn_or_cls__.__name__ == "MegatronCommOverlapCallback":
            callback.overlap_param_gather_with_optimizer_step = bool(launch.dp > 1 and launch.pp > 1 and launch.vp)


def _apply_model_and_data(recipe: Any, launch: Launch) -> None:
    nemo_run = importlib.import_module("nemo_run")
    tokenizers = importlib.import_module("nemo.collections.nlp.modules.common.tokenizer_utils")
    recipe.data.micro_batch_size = launch.mbs
    recipe.data.global_batch_size = launch.gbs
    recipe.data.num_train_samples = launch.steps * launch.gbs * launch.mbs
    recipe.data.seq_length = recipe.model.config.seq_length = launch.seq_len
    recipe.data.tokenizer = recipe.model.tokenizer = nemo_run.Config(
        tokenizers.get_nmt_tokenizer, library="null", model_name="NullTokenizer", vocab_size=launch.vocab
    )
    recipe.model.config.num_layers = launch.layers
    if launch.embedding_in_pipeline:
        recipe.model.config.account_for_embedding_in_pipeline_split = True
        recipe.model.config.account_for_loss_in_pipeline_split = True


def _fp8(launch: Launch) -> Any:
    precision = importlib.import_module("nemo.collections.llm.recipes.precision.mixed_precision")
    if launch.fp8_scaling == "delayed":
        return precision.bf16_with_fp8_mixed()
    plugin = precision.bf16_with_fp8_current_scaling_mixed()
    plugin.first_last_layers_bf16 = False  # as in NVIDIA's own benchmarks
    return plugin


def main(arguments: list[str]) -> int:
    """Train. Answers 2 when the arguments or the file are wrong, before anything is imported."""
    try:
        (path,) = arguments
        with open(path, encoding="utf-8") as file:
            launch = read_launch(file.read())
    except (OSError, ValueError) as error:
        sys.stderr.write(f"pretrain.py {' '.join(arguments)}: {error}\n")
        return 2
    recipe = build(launch)
    if os.environ.get("SLURM_PROCID", "0") == "0":
        version = importlib.import_module("nemo").__version__
        sys.stdout.write(f"NeMo {version}\n{launch}\n{recipe}\n")
        sys.stdout.flush()
    importlib.import_module("fiddle").build(recipe)()
    return 0


if __name__ == "__main__":  # the checkpoint writer's processes import this file again
    sys.exit(main(sys.argv[1:]))
