# Start an install step, whose script of BYTES bytes is on stdin, detached, or as a job called NAME if `COMMAND version`
# fails on this node, or COMMAND is empty (behind lock.sh, inside.sh and sbatch.sh):
#
#     start.sh INSTALL STEP BYTES NAME COMMAND [OPTION_OF_SBATCH]...     NAME is empty if the step is never a job
#
# Starting it twice is harmless: the step itself ensures that only one is active. A lock whose owner is dead is removed
# first. An earlier job that still waits or runs is found by its name, but not a job that has ended and that Slurm is
# cleaning up. The step's folder then contains `job` with its id. The script is never a file there, because another member
# of the group could replace it. Exits with 3 and the reason if the folder cannot be used.
install=$1 step=$2 bytes=$3 name=$4 command=$5
shift 5
script=$(cat; echo .)
script=${script%.}
[ "$(printf %s "$script" | wc -c)" -eq "$bytes" ] || exit 1 # a broken connection ends stdin as well
mkdir -p "$install" && top "$install" && descend ".llmb-tui/steps/$step" || exit 3
dir=$root/.llmb-tui/steps/$step
for trace in ./* ./.[!.]*; do
    if [ -L "$trace" ]; then
        echo "$dir/${trace#./} is a symbolic link. The program makes none there: remove it, and ask who made it." >&2
        exit 3
    fi
done

# Otherwise the outcome of an earlier attempt would count for the new one.
rm -rf ./ended.*
# in_lock COMMAND...: run it in the lock.
in_lock() (cd ./lock 2>/dev/null && [ "$(here)" = "$dir/lock" ] && "$@")
# Only one process can mark the dead owner in its lock; in a lock that another one made meanwhile, the mark is undone.
if [ -d lock ] && abandoned lock ask && in_lock mkdir "./after-$before" 2>/dev/null; then
    if [ "$(cat lock/owner 2>/dev/null)" = "$before" ]; then
        renamed ./lock "./dead.$$" && rm -rf "./dead.$$"
    else
        in_lock rmdir "./after-$before"
    fi
fi
if [ -z "$name" ] || { [ "$command" ] && "$command" version >/dev/null 2>&1 </dev/null; }; then
    rm -f ./job
    $(command -v setsid) nohup sh -c "$script" step.sh </dev/null >/dev/null 2>&1 &
    exit 0
fi

# From here on, > makes a new file or fails.
set -C
words=$(mktemp)
trap 'rm -f "$words"' EXIT

refused() {
    rm -rf ./log
    cat "$words" >./log
    mkdir ./ended.1
    exit 0
}

at_work=PENDING,CONFIGURING,RUNNING,SUSPENDED
job=$(queue -u "$(id -un)" -n "$name" -t "$at_work" -o %i 2>|"$words") || refused
if [ -z "$job" ]; then
    no_sbatch_variables
    # Slurm opens the job's output by its name when the job begins: others must not be able to put a link there.
    output=job.out
    if shared; then
        mkdir -p -m 700 "$HOME/.llmb-tui"
        output=$HOME/.llmb-tui/$name.out
    fi
    rm -f "$output"
    job=$(printf %s "$script" | sbatch --parsable "--job-name=$name" "--output=$output" --no-requeue "$@" 2>|"$words") ||
        refused
fi
# The first of several waiting jobs, or the answer of an sbatch that prints a greeting first.
printf '%s\n' "$job" | sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{0,1\}$/\1/p' | sed 1q >"./job.$$" && renamed "./job.$$" ./job
