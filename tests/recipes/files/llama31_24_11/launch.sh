#!/bin/bash
# Stand-in for tests of the recipe's launch script; facts about the real one: tests/recipes/README.md.
#SBATCH --job-name=nemo_llama3.1
#SBATCH --dependency=singleton
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --ntasks-per-node=8
#SBATCH --time=1:00:00

set -euo pipefail
export GSW_VERSION=24.11 FRAMEWORK=nemo MODEL=llama3.1 FW_VERSION=24.09
export IMAGE=${RUN_CONF_IMAGE:-$STAGE_PATH/nvidia+nemo+$FW_VERSION.sqsh}
DTYPE=${DTYPE:-fp8}
export DTYPE=${DTYPE,,}
export FP8_ENABLED=false
if [[ $DTYPE = fp8 ]]; then FP8_ENABLED=true; fi
export JOB_TOTAL_GPUS=${SBATCH_GPUS:-$((SLURM_JOB_NUM_NODES * SLURM_NTASKS_PER_NODE))}
export RESULT_DIR=$STAGE_PATH/results/$GSW_VERSION/$DTYPE/$MODEL_SIZE/$JOB_TOTAL_GPUS
export INDEX_MAPPING_DIR=${RUN_CONF_INDEX_DIR:-$STAGE_PATH}/index_mapping
data=$STAGE_PATH/llama3.1-dataset
log=$RESULT_DIR/log-${FRAMEWORK}_${MODEL}_${MODEL_SIZE}_$JOB_TOTAL_GPUS
mkdir -p "$RESULT_DIR" "$INDEX_MAPPING_DIR"
export SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-pmix}
export SRUN_OUTPUT=${SRUN_OUTPUT-${log}_%j.out} SRUN_ERROR=${SRUN_ERROR-${log}_%j.err}

source ./configure.sh

srun --container-image "$IMAGE" \
    --container-mounts "$RESULT_DIR,$INDEX_MAPPING_DIR,$data:/dataset,$STAGE_PATH/cfg:/cfg" \
    --container-writable --no-container-mount-home bash -c "$COMMAND_LINE"
