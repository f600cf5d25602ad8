# each_place COMMAND: runs it on each place where sites keep what all nodes share, and on the home directory.
each_place() {
    me=$(id -un)
    for place in "$SCRATCH" "$WORK" "$PROJECT" "/lustre/$me" "/scratch/$me" "/work/$me" "/data/$me" "/fsx/$me" "$HOME"; do
        "$1" "$place"
    done
}
