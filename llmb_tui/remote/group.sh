# Process groups of this node. Linux's own table of one process needs no program; all processes are listed only if that
# fails, because the list takes long on a node with many users.

# group_of PID: print the process group of a process.
group_of() {
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        set -- ${process##*\) } # state, parent, group
        echo "$3"
    else
        echo $(ps -o pgid= -p "$1")
    fi
}

# group_lives GROUP: true while any of its processes lives. A zombie, which has ended but was not awaited, does not count.
group_lives() {
    # Most groups have their leader until the end. Another process may have the same number after the leader's end.
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        set -- "$1" ${process##*\) }
        case "$2 $4" in
            [ZX]*) ;;
            *" $1") return 0 ;;
        esac
    fi
    # If processes cannot be listed, the group counts as alive, because it may still be running.
    ps -A -o pgid= -o stat= | awk -v group="$1" '
        $1 == group && $2 !~ /^Z/ { alive = 1 }
        END { exit !(alive || !NR) }'
}
