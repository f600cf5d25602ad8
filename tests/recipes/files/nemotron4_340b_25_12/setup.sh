#!/bin/bash
# Stand-in for tests of the recipe's setup script; facts about the real one: tests/recipes/README.md.
set -euo pipefail

GPU_TYPE=${GPU_TYPE:?GPU_TYPE is a required variable.}
export LLMB_INSTALL=${LLMB_INSTALL:?Please set LLMB_INSTALL to the path of the installation directory for all workloads}
export LLMB_WORKLOAD=$LLMB_INSTALL/workloads/pretrain_nemotron4-340b
nemo_dir=$LLMB_WORKLOAD/NeMo
if [[ ${MANUAL_INSTALL:-true} = true ]]; then
    mkdir -p "$LLMB_INSTALL"/{datasets,images,venvs,workloads} "$LLMB_WORKLOAD"
fi

nemo=1f422a19d942fab0aa54e3099f4b5752d871cb5d megatron=ac198fc0d60a8c748597e01ca4c6887d3a7bcf3d
if [[ ${GPU_TYPE,,} =~ ^(gb300|h100)$ ]]; then
    nemo=f260da5d65fccdf9c78283647f7497d9428fb654 megatron=20d73fe76eb03672c02f637e9b47e562b9010d4c
fi

if [[ ! -d $nemo_dir ]]; then git clone https://github.com/NVIDIA/NeMo.git "$nemo_dir"; fi
pushd "$nemo_dir"
git fetch origin
git checkout -f "$nemo"
python3 -m pip install '.[all]'
popd

for package in 'scipy<1.13.0' bitsandbytes==0.46.0 nvidia-modelopt==0.35.1 torch==2.8.0 torchvision==0.23.0; do
    pip install "$package"
done
pip install "megatron-core@git+https://github.com/NVIDIA/Megatron-LM.git@$megatron"
pip install nemo_run@git+https://github.com/NVIDIA/NeMo-Run.git@04f900a9c1cde79ce6beca6a175b4c62b99d7982
