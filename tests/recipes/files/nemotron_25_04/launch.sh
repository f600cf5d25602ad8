#!/bin/bash
# Stand-in for tests of the recipe's launch script; facts about the real one: tests/recipes/README.md.
set -euo pipefail
export OPENBLAS_NUM_THREADS=1 NEMORUN_HOME=$STAGE_PATH

DTYPE=${DTYPE:-fp8}
JOB_TOTAL_GPUS=${JOB_TOTAL_GPUS:-16}
size=${MODEL_SIZE:-15b}
size=${size,,}
profile=${ENABLE_PROFILE:-false}
MAX_STEPS=${MAX_STEPS:-50}
export PROFILE_START_STEP=${PROFILE_START_STEP:-20} PROFILE_STOP_STEP=${PROFILE_STOP_STEP:-25}

if [[ $size = 15b ]]; then
    TP=2 PP=1 CP=1 MBS=2 GBS=$((JOB_TOTAL_GPUS * 4)) vp=() layers=32 hidden=6144
elif [[ $size = 340b ]]; then
    TP=8 PP=8 CP=1 MBS=1 GBS=$((JOB_TOTAL_GPUS / 4)) vp=(-vp 12) layers=96 hidden=18432
fi

words=(-tp "$TP" -pp "$PP" -cp "$CP" -gb "$GBS" -mb "$MBS" --num_layers "$layers" --hidden_size "$hidden" "${vp[@]}")
if [[ ${profile,,} = true ]]; then
    words+=(-en "--profiling_start_step=$PROFILE_START_STEP" "--profiling_stop_step=$PROFILE_STOP_STEP")
    MAX_STEPS=$PROFILE_STOP_STEP
fi
if [[ -n ${LOAD_CHECKPOINT_PATH-} ]]; then MAX_STEPS=1; fi
if [[ ${CPU_PER_TASK_PINNING:-0} -gt 0 ]]; then words+=(--cpu_pinning "$CPU_PER_TASK_PINNING"); fi

pushd "$PWD/NeMo"
python -m "scripts.performance.llm.pretrain_nemotron4_$size" --account "$SBATCH_ACCOUNT" --partition "$SBATCH_PARTITION" \
    --log_dir "$NEMORUN_HOME" --gpu h100 --container_image "$STAGE_PATH/nvidia+nemo+25.02.01.sqsh" \
    --compute_dtype "$DTYPE" --num_gpus "$JOB_TOTAL_GPUS" --gpus_per_node 8 --max_steps "$MAX_STEPS" "${words[@]}"
popd
