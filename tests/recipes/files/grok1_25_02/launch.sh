#!/bin/bash
# Stand-in for tests of the recipe's launch script; facts about the real one: tests/recipes/README.md.
#SBATCH --job-name=nemo_grok1
#SBATCH --dependency=singleton
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=1:00:00
#SBATCH --ntasks-per-node=8

set -euo pipefail
export GSW_VERSION=25.02 FRAMEWORK=nemo MODEL=grok1 MODEL_SIZE=314b FW_VERSION=24.12
export IMAGE=${RUN_CONF_IMAGE:-$STAGE_PATH/nvidia+nemo+$FW_VERSION.sqsh}
export NCCL_TRACE_ENABLED=${ENABLE_NCCL_TRACE:-false}
export OPTIMIZATION_NAME=${OPTIMIZATION_NAME-} OPTIMIZATION_CODE=${OPTIMIZATION_CODE-}
DTYPE=${DTYPE:-fp8}
export DTYPE=${DTYPE,,}
export FP8_ENABLED=false
if [[ $DTYPE = fp8 ]]; then FP8_ENABLED=true; fi
export JOB_TOTAL_GPUS=${SBATCH_GPUS:-$((SLURM_JOB_NUM_NODES * SLURM_NTASKS_PER_NODE))}
kind=""
if [[ ${NCCL_TRACE_ENABLED,,} = true ]]; then
    echo "NCCL tracing enabled: logs go to a folder of their own"
    kind=-nccl-trace
fi
export RESULT_DIR=${RUN_CONF_RESULT_DIR:-$STAGE_PATH/results/$GSW_VERSION$kind/$DTYPE/$MODEL_SIZE/$JOB_TOTAL_GPUS}
export INDEX_MAPPING_DIR=$STAGE_PATH/index_mapping
log=$RESULT_DIR/log-${FRAMEWORK}_${MODEL}_${MODEL_SIZE}_$JOB_TOTAL_GPUS
mkdir -p "$RESULT_DIR" "$INDEX_MAPPING_DIR"
export SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-pmix}
export SRUN_OUTPUT=${SRUN_OUTPUT-${log}_%j.out} SRUN_ERROR=${SRUN_ERROR-${log}_%j.err}

srun --container-image "$IMAGE" \
    --container-mounts "$RESULT_DIR,$INDEX_MAPPING_DIR,$STAGE_PATH/cfg:/cfg,$STAGE_PATH/configure.sh:/gsw/configure.sh" \
    --container-writable --no-container-mount-home bash -c "source /gsw/configure.sh && launch"
