# Runs the function `work` as one install step; what stands above defined it, and `made`, which says whether there is
# nothing left to do, and `dir`, and the arguments of `work`. Run detached or as a job. The folder $dir then holds lock
# (see lock.sh) and log; in the end the lock is renamed to ended.CODE, which takes no room on a full disk.
cd "$dir" || exit 1
owner="$(id -un)@$(uname -n).$$.$(date +%s)"

# end CODE: gives the lock back.
end() {
    rm -f job
    rm -rf ended.*
    mv lock "ended.$1"
}

mkdir lock 2>/dev/null || exit 0
printf '%s\n' "$owner" 2>/dev/null >lock/owner # a user's name may have a backslash, which some echo read
if [ "$(cat lock/owner)" != "$owner" ]; then
    mv lock ended.full
    exit 1
fi
# Of two that were started at once, or queued, the second begins when the first has ended, and would undo what that made.
if made; then
    end 0
    exit 0
fi
if [ "${SLURM_JOB_ID-}" ]; then echo "$SLURM_JOB_ID" >lock/job; fi
if [ -f log ]; then mv log log.before; fi
exec >log 2>&1 </dev/null
printf 'started by %s, %s\n' "$owner" "$(date)"

(while alive "$$"; do
    touch -c lock
    sleep 5
done) &
beat=$!

(set -e; work "$@")
code=$?

kill "$beat" 2>/dev/null
[ "$(cat lock/owner 2>/dev/null)" = "$owner" ] || exit 0  # it was taken away while this slept
end "$code"
