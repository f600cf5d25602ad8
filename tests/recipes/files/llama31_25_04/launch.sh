#!/bin/bash
# Stand-in for tests of the recipe's launch script; facts about the real one: tests/recipes/README.md.
set -euo pipefail
here=$PWD
export IMAGE=${RUN_CONF_IMAGE:-$STAGE_PATH/nvidia+nemo+25.02.01.sqsh}
export HF_TOKEN=${HF_TOKEN?"Required variable HF_TOKEN"}
export NEMO_HOME=${NEMO_HOME:-$STAGE_PATH} NEMORUN_HOME=${NEMORUN_HOME:-$STAGE_PATH} HF_HOME=${HF_HOME:-$STAGE_PATH}
export MAX_STEPS=${MAX_STEPS:-50} DTYPE=${DTYPE:-bf16} MODEL_SIZE=${MODEL_SIZE:-8b}
export JOB_TOTAL_GPUS=${JOB_TOTAL_GPUS:-8} GPUS_PER_NODE=${GPUS_PER_NODE:-8} TIME_LIMIT=${TIME_LIMIT:-00:30:00}
ENABLE_CHECKPOINT=${ENABLE_CHECKPOINT:-false}
export ENABLE_CHECKPOINT=${ENABLE_CHECKPOINT,,}
export PROFILE_START_STEP=${PROFILE_START_STEP:-20} PROFILE_STOP_STEP=${PROFILE_STOP_STEP:-25}

words=()
if [[ -n ${LOAD_CHECKPOINT_PATH-} ]]; then MAX_STEPS=1; fi
if [[ ${DISABLE_PERFRUN:-false} = true ]]; then words+=(-dp); fi
if [[ ${ENABLE_PROFILE:-false} = true ]]; then
    words+=(-ns "--profiling_start_step=$PROFILE_START_STEP" "--profiling_stop_step=$PROFILE_STOP_STEP")
    MAX_STEPS=$PROFILE_STOP_STEP
fi
if [[ ${ENABLE_NCCLTRACE:-false} = true ]]; then words+=(-nt); fi
if [[ -n ${OPTIMIZATION_NAME-} ]]; then words+=(-on "$OPTIMIZATION_NAME" -oc "${OPTIMIZATION_CODE-}"); fi

pushd "$here/NeMo"
python3 -m scripts.performance.llm.pretrain_llama31 -a "$SBATCH_ACCOUNT" -p "$SBATCH_PARTITION" -t "$TIME_LIMIT" \
    -l "$NEMORUN_HOME" -i "$IMAGE" -m "$MODEL_SIZE" -c "$DTYPE" -ms "$MAX_STEPS" -ng "$JOB_TOTAL_GPUS" \
    -gn "$GPUS_PER_NODE" -hf "$HF_TOKEN" -fw 25.02.01 -gsw 25.04 "${words[@]}"
popd
