#!/bin/bash
# Stand-in for tests of the recipe's setup script; facts about the real one: tests/recipes/README.md.
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=00:40:00

set -euo pipefail
export HF_TOKEN=${HF_TOKEN?"Required variable HF_TOKEN"}
image=$STAGE_PATH/nvidia+nemo+24.09.sqsh
launcher=/opt/NeMo-Framework-Launcher

mkdir -p "$STAGE_PATH/cfg"
cp -f llama3*.yaml "$STAGE_PATH/cfg"
cp -f gen*.sh configure.sh launch.sh "$STAGE_PATH"

srun -N 1 -t 00:30:00 --pty bash -c "enroot import --output $image docker://nvcr.io#nvidia/nemo:24.09"
srun -N 1 -t 00:10:00 --container-mounts="$STAGE_PATH" --container-image="$image" \
    bash -c "cp -r $launcher/launcher_scripts $STAGE_PATH && cp $launcher/requirements.txt $STAGE_PATH"

pip install -r "$STAGE_PATH/requirements.txt"
huggingface-cli download --force-download --local-dir "$STAGE_PATH/llama3.1-dataset/llama" meta-llama/Meta-Llama-3-8B \
    config.json special_tokens_map.json tokenizer.json tokenizer_config.json generation_config.json
