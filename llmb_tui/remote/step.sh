# Runs the function `work` as one install step; what stands above defined it, and `dir`, and the arguments of `work`.
# Run detached or as a job. The folder $dir then holds lock (see lock.sh) and log; in the end the lock is renamed to
# ended.CODE, which takes no room on a full disk.
cd "$dir" || exit 1
owner="$(id -un)@$(uname -n).$$.$(date +%s)"

mkdir lock 2>/dev/null || exit 0
echo "$owner" 2>/dev/null >lock/owner
if [ "$(cat lock/owner)" != "$owner" ]; then
    mv lock ended.full
    exit 1
fi
if [ "${SLURM_JOB_ID-}" ]; then echo "$SLURM_JOB_ID" >lock/job; fi
if [ -f log ]; then mv log log.before; fi
exec >log 2>&1 </dev/null
echo "started by $owner, $(date)"

(while alive "$$"; do
    touch -c lock
    sleep 5
done) &
beat=$!

(set -e; work "$@")
code=$?

kill "$beat" 2>/dev/null
[ "$(cat lock/owner 2>/dev/null)" = "$owner" ] || exit 0  # it was taken away while this slept
rm -f job
rm -rf ended.*
mv lock "ended.$code"
