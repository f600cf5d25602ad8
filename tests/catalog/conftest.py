from __future__ import annotations

from pathlib import Path

import pytest

# The smallest preset with one example of everything that can contradict another part.
TINY = """\
workload = "tiny"
release = "1.0"
title = "Tiny"
source = "a test"
dtypes = ["bf16", "fp8"]

[gpus.h100]
gpus_per_node = 8
memory_gb = 80
peak_tflops = { bf16 = 989, fp8 = 1979 }
container = "nvidia/nemo:25.02.01"
source = "a test"

[flops]
name = "grouped queries, full attention"
grouped_queries = true
causal = false
source = "a test"

[models.1b]
layers = 16
hidden = 2048
ffn = 8192
heads = 32
query_groups = 8
vocab = 128256
seq_len = 8192
gated = true
experts = 4
experts_per_token = 2
save_min_gpus = { h100 = 16 }
source = "a test"

[[tables]]
size = "1b"
gpu = "h100"
dtypes = ["bf16", "fp8"]
scaling = "weak"
gbs_rule = "4/1"
source = "a test"
columns = ["gpus", "layers", "tp", "pp", "cp", "ep", "dp", "vp", "mbs", "gbs", "ga"]
rows = [
    [8, 8, 2, 1, 1, 4, 4, "NA", 2, 32, 4], # a proxy
    [16, 16, 2, 2, 1, 4, 4, 4, 2, 64, 8],
    [32, 16, 2, 2, 1, 4, 8, 4, 2, 128, 8],
]

[tables.notes]
8 = "Eight layers."

[[corrections]]
size = "1b"
column = "vp"
value = 8
gpus = [32]
reason = "The table prints VP 4"
source = "a script"

[[results]]
size = "1b"
gpu = "h100"
dtype = "bf16"
scaling = "weak"
source = "a test"
gpus = [8, 16]
step_time_s = [1.0, 2]
tokens_per_s = [262144, 262144]
mfu_pct = [40, 40.5]
days_per_1t_tokens = ["NA", 44.15]

[results.notes]
16 = "A misprint."

[[examples]]
size = "1b"
gpu = "h100"
dtype = "fp8"
scaling = "weak"
gpus = 32
step_time_s = 1.5
source = "a test"

[rule]
kind = "mean"
first = 35
last = 44
source = "a test"

[launch]
kind = "hydra"
command = ["python3"]
arguments = { nodes = "{nodes}" }
source = "a test"

[[settings]]
source = "a test"
containers = ["nvidia/nemo:25.02.01"]
sizes = ["1b"]
gpus = ["h100"]
dtypes = ["fp8"]
when = ["pp > 1", "not profile"]
overrides = [
    "model.tp={tp}",
    "model.fp8={fp8}",
]
prefix = ["nsys", "{dtype}"]
tasks_per_numa_node = 4
segment = 18

[settings.recipe]
"data.num_train_samples" = "{steps*gbs}"
"trainer.callbacks[TimingCallback].log_tokens" = { config = "a.module:Class", with = { tp = "{tp}" } }

[settings.base]
"model.layers" = ["{layers}"]

[settings.env]
NCCL_NVLS_ENABLE = "0"

[settings.srun]
mpi = "pmix"
container-writable = true

[[settings]]
source = "a test"
overrides = [
    "model.pp={pp}",
    "+model.cp={cp}",
    "model.ep={ep}",
    "model.vp={vp}",
    "model.mbs={mbs}",
    "model.gbs={gbs}",
    "trainer.max_steps={steps}",
    "trainer.precision={dtype}",
]
recipe = { "model.config" = { with = { seq_len = "{seq_len}", layers = ["{layers}"] } } }
base = { "model.tp" = "{tp}" }

[[options]]
name = "NCCL trace"
variable = "TRACE"
steps = 5
time_limit = "00:15:00"
source = "a test"

[access]
hub_token = false
source = "a test"
"""


@pytest.fixture
def tiny_preset(tmp_path: Path) -> Path:
    file = tmp_path / "tiny-1.0.toml"
    file.write_text(TINY, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def tiny_text() -> str:
    return TINY
