# Locks, and whether their owners still live. A lock is a directory with a file `owner` (user@host.pid.time) and, if a job
# holds it, a file `job`; it is touched every 5 s while its owner lives.

ours=''

# alive PID: true while a process of this user runs; a zombie does not count.
alive() {
    kill -0 "$1" 2>/dev/null || return 1
    # This runs every second: Linux's own table needs no program.
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        process=${process##*\) }
    else
        process=$(ps -o stat= -p "$1" 2>/dev/null)
    fi
    case $process in Z*) return 1 ;; esac
}

# queue OPTION...: squeue, without filters of the user's profile, and with hidden partitions.
queue() {
    (
        unset SQUEUE_ACCOUNT SQUEUE_LICENSES SQUEUE_NAMES SQUEUE_PARTITION SQUEUE_QOS SQUEUE_STATES
        exec squeue -a -h "$@"
    )
}

# gone JOB: true if Slurm knows the job neither as waiting nor as running. False if Slurm does not answer.
gone() {
    said=$({ queue -j "$1" -o %i; echo "= $?"; } 2>&1 | head -c 65536)
    # A site's own squeue script may print further warnings.
    case "
$said" in
        *"
"[0-9]*) false ;;
        *'= 0' | *'Invalid job id'*) true ;;
        *) false ;;
    esac
}

# abandoned LOCK [ask]: true if its owner is no longer active. With `ask`, Slurm is asked about the job that holds it.
abandoned() {
    before='' by_job='' pid=''
    # If a group shares the lock, another member can put anything there; reading a pipe would block for ever.
    if [ -f "$1/owner" ]; then { read -r before <"$1/owner"; } 2>/dev/null; fi
    if [ -f "$1/job" ]; then { read -r by_job <"$1/job"; } 2>/dev/null; fi
    case $before in */*) return 1 ;; esac # it becomes part of a name
    ours=${ours:-$(id -un)@$(uname -n).}
    case $before in "$ours"*) pid=${before#"$ours"} pid=${pid%%.*} ;; esac
    if [ "$pid" ]; then
        # A process of this node can be checked, whatever the clocks say, even if it cannot touch its lock.
        if alive "$pid" && { ! silent "$1" || ! younger; }; then return 1; fi
    elif ! silent "$1"; then
        if [ -z "$by_job" ] || [ "${2-}" != ask ] || ! gone "$by_job"; then return 1; fi
    fi
    # A lock that was released or taken over in between has no owner, or another one.
    [ -d "$1" ] && [ "$(cat "$1/owner" 2>/dev/null)" = "$before" ]
}

# silent LOCK: behind `before`: true if it was not touched for two minutes. By the file server's clock it may seem so,
# because that clock may be behind: the difference of two of its times is still right, and the owner has recorded the
# first of them.
silent() {
    [ "$(find "$1" -prune -mmin +2 2>/dev/null)" ] || return 1
    taken=${before##*.}
    set -- $(stat -c %Y "$1/owner" "$1" 2>/dev/null)
    case $taken in *[!0-9]*) taken= ;; esac
    [ "$taken" ] || return 0
    [ "$#" != 2 ] || [ "$(($(date +%s) - taken - ($2 - $1)))" -gt 120 ]
}

# younger: behind `alive` and `silent`: true if the process began after the lock was taken, so that its number was reused.
# Linux gives the start in hundredths of a second after its own.
younger() {
    read -r running rest 2>/dev/null </proc/uptime
    set -- $process
    if [ -z "$taken" ] || [ -z "$running" ] || [ "$#" -lt 20 ]; then return 0; fi
    [ "$(($(date +%s) - ${running%.*} + ${20} / 100))" -gt "$((taken + 60))" ]
}

# at_work: behind `abandoned`, and group.sh: true while any process lives that the owner of the lock started on this
# node.
at_work() {
    case $before in "$(id -un)@$(uname -n)."*) ;; *) return 1 ;; esac
    leader=${before#"$(id -un)@$(uname -n)."}
    group_lives "${leader%%.*}"
}
