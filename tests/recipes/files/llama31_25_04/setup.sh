#!/bin/bash
# Stand-in for tests of the recipe's setup script; facts about the real one: tests/recipes/README.md.
#SBATCH --time=1:00:00

set -euo pipefail
here=$PWD
image=nvidia+nemo+25.02.01.sqsh

# A folder that is there is taken as it is, however far an earlier attempt came.
if [[ ! -d NeMo ]]; then
    git clone https://github.com/NVIDIA/NeMo
    cd NeMo
    git checkout d2b21556f2455b52ad7217f334bb66eaa13c0f83
    git apply "$here/gsw_nemo.patch"
    ./reinstall.sh
fi

cp "$here"/*.py "$here/NeMo/scripts/performance/llm/"

pip install 'scipy<1.13.0'
pip install megatron-core@git+https://github.com/NVIDIA/Megatron-LM.git@ee6737da824b18f945946b4c798adf2328374cb7
pip install nemo_run@git+https://github.com/NVIDIA/NeMo-Run.git@fb550a3738768fbf1100e1579f3ca0e2207c6487

srun bash -c "enroot import --output $STAGE_PATH/$image docker://nvcr.io#nvidia/nemo:25.02.01"
