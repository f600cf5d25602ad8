#!/bin/bash
# Stand-in for tests: what the training is told, and its environment. launch.sh sources this in its own folder.
set -euo pipefail

GSW_VERSION=${GSW_VERSION?"Required variable GSW_VERSION is not set in the container. Aborting"}
if [[ ! $MODEL_SIZE =~ ^(8b|70b|405b)$ ]]; then
    echo "FATAL: unsupported MODEL_SIZE $MODEL_SIZE for llama 3.1" >&2
    exit 1
fi
if [[ ! $DTYPE =~ ^(bf16|fp8)$ ]]; then
    echo "FATAL: unsupported DTYPE $DTYPE for llama 3.1 $MODEL_SIZE" >&2
    exit 1
fi

export PYTHONUNBUFFERED=1 SLURM_UNBUFFEREDIO=1 TORCHX_MAX_RETRIES=0 TOKENIZERS_PARALLELISM=False TRANSFORMERS_OFFLINE=1
export TORCH_NCCL_AVOID_RECORD_STREAMS=1 NCCL_NVLS_ENABLE=0 NCCL_P2P_NET_CHUNKSIZE=262144 HYDRA_FULL_ERROR=1
export NVTE_DP_AMAX_REDUCE_INTERVAL=0 NVTE_ASYNC_AMAX_REDUCTION=1 NVTE_APPLY_QK_LAYER_SCALING=0
export NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=1 NVTE_FWD_LAYERNORM_SM_MARGIN=8 NVTE_BWD_LAYERNORM_SM_MARGIN=8
export NEMO_LOG_MEMORY_USAGE=1 CUDA_DEVICE_MAX_CONNECTIONS=1

profile=${ENABLE_PROFILE:-false}
MAX_STEPS=${MAX_STEPS:-50}
words=('model.data.data_impl="mock"' 'model.data.data_prefix=""')
for linear in proj fc2; do words+=("model.ub_tp_comm_overlap_cfg.${linear}_fprop.fp8_buf=$FP8_ENABLED"); done

GBS=${GBS:-$((252 * JOB_TOTAL_GPUS / 576))}
case $JOB_TOTAL_GPUS in
    192) GBS=252 NUM_LAYERS=42 PP=3 ;;
    96) GBS=126 NUM_LAYERS=21 PP=3 ;;
    32)
        GBS=126 NUM_LAYERS=7 PP=1 VP=null
        words+=(model.defer_embedding_wgrad_compute=false)
        ;;
esac

words+=(++data_dir=/dataset "run.results_dir=$RESULT_DIR" "model.data.index_mapping_dir=$INDEX_MAPPING_DIR")
words+=("trainer.num_nodes=$SLURM_JOB_NUM_NODES" "trainer.devices=$SLURM_NTASKS_PER_NODE")
words+=("trainer.max_steps=$MAX_STEPS" "trainer.val_check_interval=$MAX_STEPS" "model.global_batch_size=$GBS")
words+=("model.fp8=$FP8_ENABLED" "model.fp8_hybrid=$FP8_ENABLED" "+model.fp8_params=$FP8_ENABLED")
if [[ -n ${TP-} ]]; then words+=("model.tensor_model_parallel_size=$TP"); fi
if [[ -n ${PP-} ]]; then words+=("model.pipeline_model_parallel_size=$PP"); fi
if [[ -n ${VP-} ]]; then words+=("model.virtual_pipeline_model_parallel_size=$VP"); fi
if [[ -n ${CP-} ]]; then words+=("model.context_parallel_size=$CP"); fi
if [[ -n ${SEQ_LEN-} ]]; then
    for name in encoder_seq_length max_position_embeddings data.seq_length; do words+=("model.$name=$SEQ_LEN"); done
fi
if [[ -n ${NUM_LAYERS-} ]]; then words+=("model.num_layers=$NUM_LAYERS"); fi
words+=("model.nsys_profile.enabled=${profile^}")
base="${words[*]}"
if [[ -n ${OPTIMIZATION_NAME:-} && -n ${OPTIMIZATION_CODE:-} ]]; then
    words+=("$OPTIMIZATION_CODE")
else
    OPTIMIZATION_NAME="" OPTIMIZATION_CODE=""
fi

nsys=""
if [[ ${profile,,} = true ]]; then
    metrics=""
    if [[ $SLURM_LOCALID = 0 && ${RUN_CONF_PROFILE_GPU_METRICS:-false} = true ]]; then
        metrics=--gpu-metrics-device=all
    fi
    report=$RESULT_DIR/nsys/$MODEL-$MODEL_SIZE-${DTYPE}_${JOB_TOTAL_GPUS}g_${SLURM_JOB_ID}_%q{SLURM_NODEID}_%q{SLURM_LOCALID}
    nsys="which nsys && nsys --version && nsys status --env && mkdir -p $RESULT_DIR/nsys && nsys profile --output $report"
    nsys+=" --nic-metrics=true $metrics --inherit-environment true --force-overwrite true --capture-range=cudaProfilerApi"
    nsys+=" --capture-range-end=stop --stop-on-exit true --trace cuda,nvtx --sample none --cpuctxsw none"
    ranks=$(seq --separator=, 0 15)
    words+=("model.nsys_profile.start_step=${RUN_CONF_PROFILE_START_STEP:-20}")
    words+=("model.nsys_profile.end_step=${RUN_CONF_PROFILE_STOP_STEP:-30}" "model.nsys_profile.ranks=[$ranks]")
fi

said="GSW: MODEL=$MODEL FRAMEWORK=$FRAMEWORK MODEL_SIZE=$MODEL_SIZE JOB_NUM_NODES=$SLURM_JOB_NUM_NODES"
said+=" GPUS_PER_NODE=$SLURM_NTASKS_PER_NODE DTYPE=$DTYPE SYNTHETIC_DATA=True GSW_VERSION=$GSW_VERSION"
said+=" FW_VERSION=$FW_VERSION IMAGE=\'$IMAGE\' JOB_ID=$SLURM_JOB_ID JOB_MODE=training"
said+=" OPTIMIZATION_NAME=\'$OPTIMIZATION_NAME\' OPTIMIZATION_CODE=\'$OPTIMIZATION_CODE\' BASE_CONFIG=\'$base\'"
program=/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py
COMMAND_LINE="echo $said; cd /opt/NeMo; git rev-parse HEAD; export PYTHONPATH=/opt/NeMo:\${PYTHONPATH};"
COMMAND_LINE+=" export CUDA_DEVICE_MAX_CONNECTIONS=1; export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7;"
COMMAND_LINE+=" $nsys python3 -u $program --config-path=/cfg --config-name=llama3.1_$MODEL_SIZE.yaml ${words[*]}"
