# progress_lines TOKEN BYTES FILE...: lines of training logs about steps and checkpoints, unchanged and at most BYTES + 1
# bytes of each log; also the lines about starts, ranks and GPUs, the first ones about NCCL's network, and the first other
# line that identifies such a log.
#
#     \036TOKEN lines FILE      then the lines
#     \036TOKEN failed FILE     for a file that cannot be read
token=$1 bytes=$2
shift 2
export LC_ALL=C
for file; do
    if [ ! -r "$file" ]; then
        printf '\036%s failed %s\n' "$token" "$file"
        continue
    fi
    printf '\036%s lines %s\n' "$token" "$file"
    grep -a -m 1 -E 'training|model|experiment' "$file"
    grep -a -m 64 -E 'NCCL INFO .*(Using network | via NET/)' "$file"
    grep -a -E -e 'iteration |global_step=|train_step_timing|TFLOP/s/GPU|Global Checkpoint |[Gg]rad[ _][Nn]orm' \
        -e 'Starting with [0-9]+ processes|CANCELLED AT |Restoring states from|CUDA device|GPUs of node |^DP: ' "$file" |
        head -c "$((bytes + 1))"
done
exit 0
