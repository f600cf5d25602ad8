#!/bin/bash
# Stand-in for tests: what the training is told, and its environment. Every task sources this in the container.
set -euo pipefail

export TRANSFORMERS_OFFLINE=1 HUGGINGFACE_HUB_CACHE=/root/.cache/huggingface/hub TORCH_NCCL_AVOID_RECORD_STREAMS=1
export NCCL_NVLS_ENABLE=0 NVTE_DP_AMAX_REDUCE_INTERVAL=0 NVTE_ASYNC_AMAX_REDUCTION=1 NVTE_FUSED_ATTN=0
export HYDRA_FULL_ERROR=1 NCCL_P2P_NET_CHUNKSIZE=2097152

profile=${ENABLE_PROFILE:-false}
steps=50
if [[ ${NCCL_TRACE_ENABLED,,} = true ]]; then
    export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL,P2P,NET
    steps=10
fi

layers=64 tp=4 pp=8 cp=2 ep=8 vp=8 seq=8192 overlap=true gbs=1024
mp=$((tp * pp))
case $SLURM_JOB_NUM_NODES in
    32) layers=32 pp=4 ;;
    16) layers=16 pp=2 ;;
    8) layers=8 pp=1 vp=null overlap=false ;;
    4) layers=4 pp=1 cp=1 vp=null seq=4096 overlap=false ;;
    2) layers=4 pp=1 cp=1 ep=4 vp=null seq=4096 overlap=false ;;
    1) layers=2 pp=1 cp=1 ep=2 vp=null seq=4096 overlap=false ;;
    *)
        gbs=$((SLURM_JOB_NUM_NODES * 16))
        echo "Invalid scale"
        ;;
esac

words=(
    "model.global_batch_size=$gbs" "trainer.num_nodes=$SLURM_JOB_NUM_NODES" "trainer.max_steps=$steps"
    "trainer.val_check_interval=$steps" trainer.limit_val_batches=0.0 "run.results_dir=$RESULT_DIR"
    "exp_manager.explicit_log_dir=$RESULT_DIR/results" "model.encoder_seq_length=$seq" "model.data.seq_length=$seq"
    "model.data.index_mapping_dir=$INDEX_MAPPING_DIR" "model.tensor_model_parallel_size=$tp"
    "model.pipeline_model_parallel_size=$pp" "model.context_parallel_size=$cp" "model.expert_model_parallel_size=$ep"
    "model.virtual_pipeline_model_parallel_size=$vp" "exp_manager.checkpoint_callback_params.model_parallel_size=$mp"
    "model.num_layers=$layers" "model.optim.overlap_param_gather_with_optimizer_step=$overlap"
    "model.fp8=${FP8_ENABLED^}" trainer.enable_checkpointing=False exp_manager.create_checkpoint_callback=False
    model.ub_tp_comm_overlap=true model.sequence_parallel=true model.micro_batch_size=1 model.mcore_gpt=true
    model.transformer_engine=true model.fp8_hybrid=true "model.nsys_profile.enabled=${profile^}"
    "model.fp8_params=${FP8_ENABLED^}" model.gc_interval=40
)
base="${words[*]}"
if [[ -n $OPTIMIZATION_NAME && -n $OPTIMIZATION_CODE ]]; then words+=("$OPTIMIZATION_CODE"); fi

launch() {
    local nsys=() program=/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py
    echo "GSW: MODEL=$MODEL FRAMEWORK=$FRAMEWORK MODEL_SIZE=$MODEL_SIZE JOB_NUM_NODES=$SLURM_JOB_NUM_NODES" \
        "GPUS_PER_NODE=$SLURM_NTASKS_PER_NODE DTYPE=$DTYPE SYNTHETIC_DATA=True GSW_VERSION=$GSW_VERSION" \
        "IMAGE='$IMAGE' FW_VERSION=$FW_VERSION JOB_ID=$SLURM_JOB_ID JOB_MODE=training" \
        "OPTIMIZATION_NAME='$OPTIMIZATION_NAME' OPTIMIZATION_CODE='$OPTIMIZATION_CODE' BASE_CONFIG='$base'"
    cd /opt/NeMo
    git rev-parse HEAD
    export PYTHONPATH=/opt/NeMo:${PYTHONPATH-} CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
    if [[ ${profile,,} = true ]]; then
        local report=$RESULT_DIR/nsys/${MODEL}_${MODEL_SIZE}_${DTYPE}_${JOB_TOTAL_GPUS}g_${SLURM_JOB_ID}
        which nsys && nsys --version && nsys status --env && mkdir -p "$RESULT_DIR/nsys"
        nsys=(nsys profile --output "${report}_%q{SLURM_NODEID}_%q{SLURM_LOCALID}" --nic-metrics=true)
        if [[ $SLURM_LOCALID = 0 && ${RUN_CONF_PROFILE_GPU_METRICS:-false} = true ]]; then
            nsys+=(--gpu-metrics-device=all)
        fi
        nsys+=(--inherit-environment true --force-overwrite true --capture-range=cudaProfilerApi)
        nsys+=(--capture-range-end=stop --stop-on-exit true --trace cuda,nvtx --sample none --cpuctxsw none)
        words+=("model.nsys_profile.start_step=${RUN_CONF_PROFILE_START_STEP:-20}")
        words+=("model.nsys_profile.end_step=${RUN_CONF_PROFILE_STOP_STEP:-30}")
        words+=("model.nsys_profile.ranks=[${RUN_CONF_PROFILE_RANKS:-0,1,2,3,4,5,6,7}]")
    fi
    "${nsys[@]}" python3 -u "$program" --config-path=/cfg --config-name="${MODEL}_$MODEL_SIZE.yaml" "${words[@]}"
}
