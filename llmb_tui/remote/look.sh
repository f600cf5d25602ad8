# look ASK FOLDER JOB_NAME GROWING RESULT...: print the state of one install step (needs lock.sh and there.sh):
#
#     = STATE BYTES CACHED LAYERS OF_LAYERS JOB      sizes in bytes, JOB is `-` for none
#     ?PENDING_REASON|START                          of a waiting job, if ASK is `ask`
#     @USER OWNER                                    of a running step whose lock belongs to another user, with its `owner`
#     |LINE                                          the end of its log
#
# STATE: missing; lost (an attempt on a login node died); gone (a job died); waiting or running; done; failed. Bytes and
# layers are counted for a running step, layers only if enroot has a cache there, and the bytes of a result that is a file;
# otherwise they are 0: this runs every second on a login node, where each started program costs all users.
look() {
    ask=$1 folder=$2 name=$3 growing=$4
    shift 4
    code=0
    for end in "$folder"/ended.*; do if [ -d "$end" ]; then code=${end##*.}; fi; done
    state=missing queued= job= measured='0 0 0 0'
    if [ -f "$folder/job" ]; then { read -r job <"$folder/job"; } 2>/dev/null; fi
    if there "$@"; then
        state=done
    elif [ -d "$folder/lock" ]; then
        state=running
        if abandoned "$folder/lock" "$ask"; then
            state=lost
            if [ -s "$folder/lock/job" ]; then state=gone; fi
        fi
    elif [ "$code" != 0 ]; then
        state=failed
    elif [ "$job" ]; then
        state=waiting
        if [ "$ask" = ask ]; then
            if gone "$job"; then state=gone; fi
            queued=$(queue -j "$job" -o '%r|%S' 2>/dev/null | head -c 1000)
        fi
    fi
    if [ "$state" = done ] && [ -f "$1" ]; then
        measured="$(sizes "$1") 0 0 0"
    elif [ "$state" = running ]; then
        if [ "$growing" ]; then set -- "$growing"*; fi
        fetched='0 0 0'
        if [ -d "$folder/cache" ]; then fetched="$(layers "$folder/cache") $(of_layers "$folder/log")"; fi
        measured="$(sizes "$@") $fetched"
    fi
    printf '= %s %s %s\n' "$state" "$measured" "${job:--}"
    if [ "$queued" ]; then printf '?%s\n' "$queued"; fi
    if [ "$state" = running ] && [ ! -O "$folder/lock" ]; then printf '@%s %.200s\n' "$(user_of "$folder/lock")" "$before"; fi
    if [ "$code" = full ]; then echo '|No space left on device'; fi
    case $state in
        running | failed | lost) ends "$folder/log" ;;
        gone) ends "$folder/log" "$folder/job.out" "$HOME/.llmb-tui/$name.out" ;;
    esac
}

# Name of the user to whom a directory belongs.
user_of() {
    set -- $(ls -ld "$1" 2>/dev/null)
    printf %s "${3-}"
}

# Bytes of the files among the arguments.
sizes() {
    ls -lnd "$@" 2>/dev/null | awk '/^-/ { sum += $5 } END { printf "%.0f", sum }'
}

# Bytes in enroot's cache, and its number of complete files: the name of a growing file contains a dot.
layers() {
    ls -ln "$1" 2>/dev/null | awk '/^-/ { sum += $5; whole += $NF !~ /\./ } END { printf "%.0f %d", sum, whole }'
}

# Number of layers in enroot's last message about the download.
of_layers() {
    sed -n 's/.*Downloading \([0-9][0-9]*\) missing layers.*/\1/p' "$1" 2>/dev/null | awk '{ of = $1 } END { print of + 0 }'
}

# Last lines of these files, each from its beginning and cut if it is very long; a progress line that was overwritten
# repeatedly counts as many lines.
ends() {
    for path; do
        # Another member of the group could redirect this to a file of the user, or to a pipe that blocks for ever.
        if [ -L "$path" ] || [ ! -f "$path" ]; then continue; fi
        tail -c 40000 "$path" 2>/dev/null | tr '\r' '\n' | sed -n '/[^[:space:]]/s/^/|/p' | tail -n 25 | cut -c 1-1001
    done
}
