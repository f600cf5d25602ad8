# Process groups of this node. A look at all of its processes takes long where many people work, and is the last resort:
# Linux's own table costs no program.

# group_of PID: the process group of a process.
group_of() {
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        set -- ${process##*) } # its state, its parent, its group
        echo "$3"
    else
        echo $(ps -o pgid= -p "$1")
    fi
}

# group_lives GROUP: true while any process of it does. One that has ended and that nobody has waited for does not.
group_lives() {
    kill -0 "-$1" 2>/dev/null || [ -d "/proc/$1" ] || return 1 # that of somebody else is not ours to signal
    # Those count here as well; but a leader, which most groups have to their end, says for itself that it lives.
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        case ${process##*) } in
            [ZX]*) ;;
            *) return 0 ;;
        esac
    fi
    ps -A -o pgid= -o stat= | awk -v group="$1" '
        $1 == group && $2 !~ /^Z/ { alive = 1 }
        END { exit !(alive || !NR) }'
}
