#!/bin/bash
# Stand-in for tests of the recipe's setup script; facts about the real one: tests/recipes/README.md.
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=00:45:00

set -euo pipefail
mkdir -vp "$STAGE_PATH/cfg"
cp -vf ./*.yaml "$STAGE_PATH/cfg/"
cp -vf configure.sh launch.sh "$STAGE_PATH/"
srun bash -c "enroot import --output $STAGE_PATH/nvidia+nemo+24.12.sqsh docker://nvcr.io#nvidia/nemo:24.12"
