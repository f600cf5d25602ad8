# Run the function `work` as one install step. The text above defines it, and `made`, which is true if there is nothing to
# do, `install` and `step`, the install directory and the step's folder in it, and the arguments of `work` (behind lock.sh,
# there.sh and inside.sh). Runs detached or as a job. The folder then contains lock (see lock.sh) and log; in the end the
# lock is renamed to ended.CODE, which needs no room on a full disk. The group may write to the folder: nothing in it is
# executed, and nothing is written through a link in it.
top "$install" && enter ".llmb-tui/steps/$step" || exit 1
dir=$root/.llmb-tui/steps/$step
owner="$(id -un)@$(uname -n).$$.$(date +%s)"

# end CODE: release the lock.
end() {
    rm -f ./job
    rm -rf ./ended.*
    renamed ./lock "./ended.$1"
}

mkdir ./lock 2>/dev/null || exit 0
# A new file in a directory that is entered first: a link in place of either is not followed.
in_lock() (cd ./lock && [ "$(here)" = "$dir/lock" ] && set -C && printf '%s\n' "$2" >"./$1") 2>/dev/null
in_lock owner "$owner" # a user's name may have a backslash, which some echo interpret
if [ "$(cat lock/owner)" != "$owner" ]; then
    renamed ./lock ./ended.full
    exit 1
fi
# If two were started at once, or queued, the second begins after the first has ended, and would undo its work.
if made; then
    end 0
    exit 0
fi
if [ "${SLURM_JOB_ID-}" ]; then in_lock job "$SLURM_JOB_ID"; fi
if [ -f log ] && [ ! -L log ]; then renamed ./log ./log.before; fi
rm -rf ./log
set -C
exec >./log 2>&1 </dev/null
set +C
printf 'started by %s, %s\n' "$owner" "$(date)"
if [ ! -s log ]; then
    end full
    exit 1
fi

(while alive "$$"; do
    touch -c ./lock
    sleep 5
done) &
beat=$!

(set -e; work "$@")
code=$?

kill "$beat" 2>/dev/null
[ "$(cat lock/owner 2>/dev/null)" = "$owner" ] || exit 0  # the lock was removed during the sleep
end "$code"
