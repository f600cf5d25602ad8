# Process groups of this node. Linux's own table of one process costs no program; all processes are listed only where
# that does not answer, as it takes long where many people work.

# group_of PID: the process group of a process.
group_of() {
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        set -- ${process##*\) } # its state, its parent, its group
        echo "$3"
    else
        echo $(ps -o pgid= -p "$1")
    fi
}

# group_lives GROUP: true while any process of it does. One that has ended and that nobody has waited for does not.
group_lives() {
    # Most groups have their leader to the end. Another process may have got the number of one that is gone.
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        set -- "$1" ${process##*\) }
        case "$2 $4" in
            [ZX]*) ;;
            *" $1") return 0 ;;
        esac
    fi
    # What cannot be listed counts as alive: nothing is taken for over that may go on.
    ps -A -o pgid= -o stat= | awk -v group="$1" '
        $1 == group && $2 !~ /^Z/ { alive = 1 }
        END { exit !(alive || !NR) }'
}
