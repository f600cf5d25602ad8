# Who holds a lock, and whether they still live. A lock is a directory with a file `owner` (user@host.pid.time) and,
# where a job holds it, a file `job`; it is touched every 5 s while its owner lives.

ours=''

# alive PID: true while a process of ours runs; one that has ended and that nobody has waited for does not.
alive() {
    kill -0 "$1" 2>/dev/null || return 1
    # This is asked every second: Linux's own table costs no program.
    if read -r process 2>/dev/null <"/proc/$1/stat"; then
        process=${process##*\) }
    else
        process=$(ps -o stat= -p "$1" 2>/dev/null)
    fi
    case $process in Z*) return 1 ;; esac
}

# queue OPTION...: squeue, without what a person's profile may filter it by, and hidden partitions too.
queue() {
    (
        unset SQUEUE_ACCOUNT SQUEUE_LICENSES SQUEUE_NAMES SQUEUE_PARTITION SQUEUE_QOS SQUEUE_STATES
        exec squeue -a -h "$@"
    )
}

# gone JOB: true when Slurm does not know the job as waiting or running. What Slurm cannot say is no.
gone() {
    if said=$(queue -j "$1" -o %i 2>&1); then
        # A squeue that is a script of the site's may warn of something beside.
        case "
$said" in *"
"[0-9]*) false ;; *) true ;; esac
    else
        case $said in *"Invalid job id"*) true ;; *) false ;; esac
    fi
}

# abandoned LOCK [ask]: true when nobody is at work any more. With `ask` Slurm is asked about the job that holds it.
abandoned() {
    before='' by_job='' pid=''
    # Where a group shares the lock, another member can put anything there; a pipe would hold the reader for ever.
    if [ -f "$1/owner" ]; then { read -r before <"$1/owner"; } 2>/dev/null; fi
    if [ -f "$1/job" ]; then { read -r by_job <"$1/job"; } 2>/dev/null; fi
    case $before in */*) return 1 ;; esac # it becomes a part of a name
    ours=${ours:-$(id -un)@$(uname -n).}
    case $before in "$ours"*) pid=${before#"$ours"} pid=${pid%%.*} ;; esac
    if [ "$pid" ]; then
        # A process of this node can be asked for, whatever the clocks say, and goes on also where it cannot touch its lock.
        if alive "$pid" && { ! silent "$1" || ! younger; }; then return 1; fi
    elif ! silent "$1"; then
        if [ -z "$by_job" ] || [ "${2-}" != ask ] || ! gone "$by_job"; then return 1; fi
    fi
    # A lock that was given back or taken over in between has no owner, or another one.
    [ -d "$1" ] && [ "$(cat "$1/owner" 2>/dev/null)" = "$before" ]
}

# silent LOCK: behind `before`: true where it has not been touched for two minutes. The clock of the file server, by which
# that looks so, may be behind: the difference of two of its times is right all the same, and the owner has said when the
# first of them was.
silent() {
    [ "$(find "$1" -prune -mmin +2 2>/dev/null)" ] || return 1
    taken=${before##*.}
    set -- $(stat -c %Y "$1/owner" "$1" 2>/dev/null)
    case $taken in *[!0-9]*) taken= ;; esac
    [ "$taken" ] || return 0
    [ "$#" != 2 ] || [ "$(($(date +%s) - taken - ($2 - $1)))" -gt 120 ]
}

# younger: behind `alive` and `silent`: true where the process began after the lock was taken: the number was given anew.
# Linux says how long after its own start that was, in hundredths of a second.
younger() {
    read -r running rest 2>/dev/null </proc/uptime
    set -- $process
    if [ -z "$taken" ] || [ -z "$running" ] || [ "$#" -lt 20 ]; then return 0; fi
    [ "$(($(date +%s) - ${running%.*} + ${20} / 100))" -gt "$((taken + 60))" ]
}

# at_work: behind `abandoned`, and group.sh: true while anything lives that the owner of the lock, on this node, has
# started.
at_work() {
    case $before in "$(id -un)@$(uname -n)."*) ;; *) return 1 ;; esac
    leader=${before#"$(id -un)@$(uname -n)."}
    group_lives "${leader%%.*}"
}
