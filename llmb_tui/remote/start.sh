# Starts FOLDER/step.sh detached, or as a job called NAME where this node has no COMMAND, or no COMMAND is named (behind
# lock.sh and sbatch.sh):
#
#     start.sh FOLDER NAME COMMAND [OPTION_OF_SBATCH]...     NAME is empty where it is never a job
#
# Starting it twice is harmless: the step itself takes care that only one is at work. A lock whose owner is dead is
# taken away first. An earlier job that still waits or runs is found by its name, but not one that has ended and that
# Slurm clears up after. FOLDER/job then holds its id.
cd "$1" || exit 1
name=$2 command=$3
shift 3

# The outcome of an attempt that has ended would be taken for that of the new one.
rm -rf ended.*
# Only one can mark the dead owner in their lock; in a lock that somebody else made meanwhile the mark is undone.
if [ -d lock ] && abandoned lock ask && mkdir "lock/after-$before" 2>/dev/null; then
    if [ "$(cat lock/owner 2>/dev/null)" = "$before" ]; then
        mv lock "dead.$$" && rm -rf "dead.$$"
    else
        rmdir "lock/after-$before"
    fi
fi
if [ -z "$name" ] || { [ "$command" ] && command -v "$command" >/dev/null 2>&1; }; then
    rm -f job
    $(command -v setsid) nohup sh step.sh </dev/null >/dev/null 2>&1 &
    exit 0
fi

refused() {
    echo "$1" >log
    mkdir ended.1
    exit 0
}

at_work=PENDING,CONFIGURING,RUNNING,SUSPENDED
job=$(queue -u "$(id -un)" -n "$name" -t "$at_work" -o %i 2>refusal) || refused "$(cat refusal)"
if [ -z "$job" ]; then
    no_sbatch_variables
    rm -f job.out
    job=$(sbatch --parsable "--job-name=$name" --output=job.out --no-requeue "$@" step.sh 2>refusal </dev/null) ||
        refused "$(cat refusal)"
fi
# The first of several that wait, or the answer of an sbatch that greets before it.
printf '%s\n' "$job" | sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{0,1\}$/\1/p' | sed 1q >job
