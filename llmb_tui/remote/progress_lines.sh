# progress_lines TOKEN BYTES FILE...: what logs of trainings say of steps and checkpoints, line by line as it stands
# there, no more than BYTES + 1 bytes of each; and of the others the first that tells that it is such a log.
#
#     \036TOKEN lines FILE      then the lines
#     \036TOKEN failed FILE     for one that cannot be read
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
    grep -a -E 'iteration |global_step=|train_step_timing|TFLOP/s/GPU|Global Checkpoint |[Gg]rad[ _][Nn]orm' "$file" |
        head -c "$((bytes + 1))"
done
exit 0
