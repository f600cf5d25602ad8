# Runs the function `work` as one install step; what stands above defined it, and `dir`, and the arguments of `work`.
# Run detached. The folder $dir then holds lock/owner (who is at work; the lock is touched while they are), log and exit.
cd "$dir" || exit 1
owner="$(id -un)@$(uname -n).$$.$(date +%s)"

# A lock that nobody has touched for minutes is taken over, by one only: whoever can mark the old owner in it.
# The owner is read before the age: a lock that was taken over in between is young again.
if ! mkdir lock 2>/dev/null; then
    before=$(cat lock/owner 2>/dev/null)
    [ -n "$(find lock -prune -mmin +2 2>/dev/null)" ] || exit 0
    mkdir "lock/after-$before" 2>/dev/null || exit 0
fi
echo "$owner" >lock/owner
rm -f exit
exec >>log 2>&1 </dev/null
echo "started by $owner, $(date)"

(while kill -0 "$$" 2>/dev/null; do
    touch -c lock
    sleep 5
done) &
beat=$!

(set -e; work "$@")
code=$?

kill "$beat" 2>/dev/null
[ "$(cat lock/owner 2>/dev/null)" = "$owner" ] || exit 0  # it was taken over while this slept
echo "$code" >exit.new
mv exit.new exit
mv lock "lock.$owner" && rm -rf "lock.$owner"
