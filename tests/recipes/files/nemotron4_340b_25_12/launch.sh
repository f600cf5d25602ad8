#!/bin/bash
# Stand-in for tests of the recipe's launch script; facts about the real one: tests/recipes/README.md.
set -euo pipefail
export OPENBLAS_NUM_THREADS=1
export LLMB_WORKLOAD=$LLMB_INSTALL/workloads/pretrain_nemotron4-340b
export NEMORUN_HOME=$LLMB_WORKLOAD
gpu=${GPU_TYPE:?GPU_TYPE is a required variable.}
gpu=${gpu,,}
version=25.09.00
if [[ $gpu =~ ^(gb200|b200)$ ]]; then version=25.07.01; fi
export IMAGE=${RUN_CONF_IMAGE:-$LLMB_INSTALL/images/nvidia+nemo+$version.sqsh}
JOB_TOTAL_GPUS=${JOB_TOTAL_GPUS:?JOB_TOTAL_GPUS is a required variable.}
CLUSTER_TYPE=${CLUSTER_TYPE:-slurm}
DTYPE=${DTYPE:-fp8}
DTYPE=${DTYPE,,}
profile=${ENABLE_PROFILE:-false} metrics=${ENABLE_GPU_METRICS:-false} vboost=${ENABLE_VBOOST:-false}
strong=${STRONG_SCALING:-false} save=${ENABLE_CHECKPOINT:-false}
MAX_STEPS=${MAX_STEPS:-50}
export HF_HOME=$LLMB_INSTALL/.cache/huggingface
mounts=$HF_HOME${RUN_CONF_MOUNTS:+,$RUN_CONF_MOUNTS}
export PROFILE_START_STEP=${PROFILE_START_STEP:-45} PROFILE_STOP_STEP=${PROFILE_STOP_STEP:-50}

if [[ $gpu = h100 && ${strong,,} = true ]]; then
    echo "Strong scaling is not supported for h100. Please use GPU_TYPE=<gb200, b200, gb300>"
    exit 1
fi
case $gpu in
    gb200 | gb300 | b200)
        GPUS_PER_NODE=${GPUS_PER_NODE:-$([[ $gpu = b200 ]] && echo 8 || echo 4)}
        PP=4 CUDA_GRAPH=${CUDA_GRAPH:-true}
        ;;
    h100) GPUS_PER_NODE=${GPUS_PER_NODE:-8} PP=8 CUDA_GRAPH=${CUDA_GRAPH:-false} ;;
    *)
        echo "$gpu is unsupported for this workload."
        exit 1
        ;;
esac
if [[ ${strong,,} = true ]]; then
    GBS=512 TIME_LIMIT=${TIME_LIMIT:-00:35:00}
else
    GBS=${GBS:-$((JOB_TOTAL_GPUS / 4))}
fi

words=(-tp 8 -pp "$PP" -cp 1 -gb "$GBS" -mb 1 --num_layers 96 --hidden_size 18432 -ep 1 -fsdp 0)
words+=(--cuda_graphs "$CUDA_GRAPH" -vp 12)
if [[ ${profile,,} = true ]]; then
    words+=(-en "--profiling_start_step=$PROFILE_START_STEP" "--profiling_stop_step=$PROFILE_STOP_STEP")
    if [[ ${metrics,,} = true ]]; then words+=(-pgm); fi
    MAX_STEPS=$PROFILE_STOP_STEP
fi
if [[ ${save,,} = true ]]; then words+=(--checkpoint_save=True); else words+=(--checkpoint_save=False); fi
if [[ ${vboost,,} = true ]]; then words+=(--enable_vboost true); fi
if [[ -n ${LOAD_CHECKPOINT_PATH-} ]]; then
    MAX_STEPS=1 mounts+=,$LOAD_CHECKPOINT_PATH
    words+=("--checkpoint_load_path=$LOAD_CHECKPOINT_PATH")
fi
words+=(--custom_mounts "$mounts")
if [[ $DTYPE = fp8 ]]; then words+=(-fr cs); fi
if [[ ${CLUSTER_TYPE,,} != slurm ]]; then
    echo "stand-in: there is no Run:ai here" >&2
    exit 1
fi

pushd "$LLMB_WORKLOAD/NeMo"
python3 -m scripts.performance.llm.pretrain_nemotron4_340b --gpu "$gpu" --container_image "$IMAGE" \
    --compute_dtype "$DTYPE" --num_gpus "$JOB_TOTAL_GPUS" --gpus_per_node "$GPUS_PER_NODE" --max_steps "$MAX_STEPS" \
    "${words[@]}" slurm --account "$SBATCH_ACCOUNT" --partition "$SBATCH_PARTITION" --log_dir "$NEMORUN_HOME" \
    --time_limit "${TIME_LIMIT:-00:25:00}"
popd
