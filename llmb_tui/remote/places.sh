# each_place COMMAND: run it on each usual shared place of a site, and on the home directory.
each_place() {
    me=$(id -un)
    for place in "$SCRATCH" "$WORK" "$PROJECT" "/lustre/$me" "/scratch/$me" "/work/$me" "/data/$me" "/fsx/$me" "$HOME"; do
        "$1" "$place"
    done
}
