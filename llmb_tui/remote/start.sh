# Starts an install step, whose script of BYTES comes on stdin, detached, or as a job called NAME where this node has no
# COMMAND, or no COMMAND is named (behind lock.sh, inside.sh and sbatch.sh):
#
#     start.sh INSTALL STEP BYTES NAME COMMAND [OPTION_OF_SBATCH]...     NAME is empty where it is never a job
#
# Starting it twice is harmless: the step itself takes care that only one is at work. A lock whose owner is dead is
# taken away first. An earlier job that still waits or runs is found by its name, but not one that has ended and that
# Slurm clears up after. The step's folder then holds `job` with its id. The script is never a file there, where another
# member of the group could put another one in its place. Ends with 3 where the folder cannot be used, and says why.
install=$1 step=$2 bytes=$3 name=$4 command=$5
shift 5
script=$(cat; echo .)
script=${script%.}
[ "$(printf %s "$script" | wc -c)" -eq "$bytes" ] || exit 1 # a line that is cut ends stdin as well
mkdir -p "$install" && top "$install" && descend ".llmb-tui/steps/$step" || exit 3
dir=$root/.llmb-tui/steps/$step
for trace in ./* ./.[!.]*; do
    if [ -L "$trace" ]; then
        echo "$dir/${trace#./} is a symbolic link. The program makes none there: remove it, and ask who made it." >&2
        exit 3
    fi
done

# The outcome of an attempt that has ended would be taken for that of the new one.
rm -rf ./ended.*
# in_lock COMMAND...: runs it in the lock.
in_lock() (cd ./lock 2>/dev/null && [ "$(here)" = "$dir/lock" ] && "$@")
# Only one can mark the dead owner in their lock; in a lock that somebody else made meanwhile the mark is undone.
if [ -d lock ] && abandoned lock ask && in_lock mkdir "./after-$before" 2>/dev/null; then
    if [ "$(cat lock/owner 2>/dev/null)" = "$before" ]; then
        renamed ./lock "./dead.$$" && rm -rf "./dead.$$"
    else
        in_lock rmdir "./after-$before"
    fi
fi
if [ -z "$name" ] || { [ "$command" ] && command -v "$command" >/dev/null 2>&1; }; then
    rm -f ./job
    $(command -v setsid) nohup sh -c "$script" step.sh </dev/null >/dev/null 2>&1 &
    exit 0
fi

# A > makes a new file from here on, or fails.
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
    # Slurm opens the job's output by its name, when the job begins: others must not be able to put a link there.
    output=job.out
    if shared; then
        mkdir -p -m 700 "$HOME/.llmb-tui"
        output=$HOME/.llmb-tui/$name.out
    fi
    rm -f "$output"
    job=$(printf %s "$script" | sbatch --parsable "--job-name=$name" "--output=$output" --no-requeue "$@" 2>|"$words") ||
        refused
fi
# The first of several that wait, or the answer of an sbatch that greets before it.
printf '%s\n' "$job" | sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{0,1\}$/\1/p' | sed 1q >"./job.$$" && renamed "./job.$$" ./job
