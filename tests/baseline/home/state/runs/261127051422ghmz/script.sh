cd /var/tmp/llmb-rig-0/install/1795756446888450591/published/nemotron4-25.04/dgxc-benchmarking/nemotron && \
VIRTUAL_ENV=/var/tmp/llmb-rig-0/install/1795756446888450591/venvs/nemotron4-25.04 PATH=/var/tmp/llmb-rig-0/install/1795756446888450591/venvs/nemotron4-25.04/bin:"$PATH" \
env -u MAX_STEPS -u CPU_PER_TASK_PINNING -u ENABLE_PROFILE -u PROFILE_START_STEP -u PROFILE_STOP_STEP -u ENABLE_CHECKPOINT -u LOAD_CHECKPOINT_PATH -u NEMO_HOME \
STAGE_PATH=/var/tmp/llmb-rig-0/install/1795756446888450591/published/nemotron4-25.04 \
SBATCH_ACCOUNT=llmbench \
SBATCH_PARTITION=batch \
DTYPE=fp8 \
MODEL_SIZE=15b \
JOB_TOTAL_GPUS=16 \
SBATCH_GPUS_PER_NODE=8 \
./launch.sh