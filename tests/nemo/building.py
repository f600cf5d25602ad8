"""A program that builds a launch file's recipe with NeMo's Python, as the entry script does, and prints facts as JSON.

python building.py pretrain.py launch.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


def facts(script: str, launch: str) -> dict[str, Any]:
    """Facts about NeMo's objects after the recipe was built, without a training."""
    import fiddle
    from nemo.collections.llm.recipes.tp_overlap_configs import userbuffers

    spec = spec_from_file_location("pretrain", script)
    assert spec is not None
    assert spec.loader is not None
    pretrain = module_from_spec(spec)
    sys.modules["pretrain"] = pretrain
    spec.loader.exec_module(pretrain)
    recipe = pretrain.build(pretrain.read_launch(Path(launch).read_text()))
    built = fiddle.build(recipe).keywords
    callbacks = {type(callback).__name__: callback for callback in built["trainer"].callbacks}
    buffers = callbacks["MegatronCommOverlapCallback"].user_comm_overlap_cfg.tp_comm_overlap_cfg
    own = userbuffers.userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192
    flops = callbacks["FLOPsMeasurementCallback"]
    plugin = built["trainer"].strategy.precision_plugin
    return {
        "buffers are NeMo's": replace(buffers, qkv_fprop=own.qkv_fprop) == own,
        "aggregate": [buffers.qkv_fprop.aggregate, own.qkv_fprop.aggregate],
        "flops of the model": flops.model_cfg is built["model"].config,
        "flops of the data": flops.data_cfg is built["data"],
        "one tokenizer": built["model"].tokenizer is built["data"].tokenizer,
        "vocabulary": built["data"].tokenizer.vocab_size,
        "plugin": [plugin.precision, plugin.dtype_config.grad_reduce_in_fp32],
        "resume": built["resume"].restore_config.path,
        "profile": callbacks["NsysCallback"]._nsys_profile_ranks,
        "checkpoints": callbacks["ModelCheckpoint"]._every_n_train_steps,
    }


if __name__ == "__main__":
    json.dump(facts(*sys.argv[1:]), sys.stdout)
