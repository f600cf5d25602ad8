# Start a recipe's own launch script, at most once however often this is started. Runs detached, behind inside.sh,
# group.sh, claim.sh and lock.sh:
#
#     launch.sh INSTALL FOLDER INDEX TOKEN
#
# INDEX is NeMo-Run's record of its jobs, TOKEN a file below the home directory; both may be empty. FOLDER contains
# command.sh, the command as it was shown, and is next to those of all launches in the same folder of the recipe. Only one
# of these is active at a time, so that jobs which appear between two launches are known to be the first one's. FOLDER
# then contains
#
#     claim, exit     see claim.sh
#     waits           owner of the launch that this one waits for
#     queue, index    the user's jobs, and INDEX, just before the command was started
#     began           Unix time of the start; before this exists, nothing can have been submitted
#     beat            Unix time of the last sign of life
#     output          output of the command, without the token
#     ids             the jobs that the output names
top "$1" && enter_own "${2#"$1"/}" || exit 1
launches=$(cd .. && here)
claimed || exit 0
unset token # it could be inherited
index=$3 token=
if [ "$4" ]; then token=$(cat "$HOME/$4" 2>/dev/null); fi
owner="$(id -un)@$(uname -n).$$.$(date +%s)"
# The lock is a link to a folder, which exists with its owner or not at all.
lock="../launching.$(id -u)"
mine="launching.$owner"

# in_launches NAME COMMAND...: run the command in this directory among the launches, unless it is a link.
in_launches() (cd "../$1" 2>/dev/null && [ "$(here)" = "$launches/$1" ] && shift && "$@")
sign() { echo "$1" >./run && printf '%s\n' "$owner" >./owner; }

# Wait until no other launch is active here; not for ever, because one may hang.
take_lock() {
    patience=1800
    folder=$(here)
    (umask go-w && mkdir "../$mine") && in_launches "$mine" sign "${folder##*/}" || return 1
    until ln -sn "$mine" "$lock" 2>/dev/null; do
        holder=$(readlink "$lock")
        case $holder in
            launching.*/*) holder=other ;;
            launching.*) ;;
            *) holder=$(if [ -e "$lock" ]; then echo other; fi) ;;
        esac
        if [ "$holder" = other ]; then
            echo "The folder of the launches is not as it should be: $folder"
            return 1
        fi
        # A lock without a holder was just released.
        if [ "$holder" ] && { [ ! -d "../$holder" ] || { abandoned "../$holder" && ! at_work; }; }; then
            bury && continue
        fi
        # Without this, the launch would count as dead as soon as it has the lock.
        in_launches "$mine" touch -c .
        printf '%s %s\n' "$(cat "../$holder/run" 2>/dev/null)" "$(cat "../$holder/owner" 2>/dev/null)" >waits
        patience=$((patience - 1))
        if [ "$patience" = 0 ]; then
            printf 'Another launch in the same folder has not ended within half an hour: %s\n' "$(cat waits)"
            return 1
        fi
        sleep 1
    done
    rm -f waits
}

# Remove the lock of a dead holder. Only the process that makes the mark may do so; a mark whose maker died is old.
bury() {
    if [ -d "../$holder" ] && ! in_launches "$holder" mkdir ./buried 2>/dev/null; then
        [ "$(find "../$holder/buried" -prune -mmin +0 2>/dev/null)" ] || return 1
    fi
    if [ "$(readlink "$lock")" = "$holder" ]; then rm -f "$lock"; fi
    rm -rf "../$holder"
}

give_lock_back() {
    if [ "$(readlink "$lock")" = "$mine" ]; then rm -f "$lock"; fi
    rm -rf "../$mine"
}

# State before the start, to distinguish new jobs.
snapshot() {
    queue --me -t all -o %A >queue.new || return 1
    mv queue.new queue
    : >index
    if [ -s "$index" ]; then cp "$index" index || return 1; fi
    date +%s >began.new && [ -s began.new ] && mv began.new began
}

# beats PID: touch the lock and record the time, while either process lives.
beats() {
    seconds=0
    while alive "$$" || alive "$1"; do
        if [ $((seconds % 5)) = 0 ]; then
            in_launches "$mine" touch -c .
            date +%s >beat.new && mv beat.new beat
        fi
        seconds=$((seconds + 1))
        sleep 1
    done
}

# Pass on everything but the token, line by line, as soon as it arrives.
hushed() {
    while IFS= read -r line || [ "$line" ]; do
        while [ "$token" ]; do
            case $line in
                *"$token"*) line="${line%%"$token"*}(the token)${line#*"$token"}" ;;
                *) break ;;
            esac
        done
        printf '%s\n' "$line"
    done
}

beat=
# Slurm may take minutes to list the jobs.
if ! { take_lock && { beats "$$" >/dev/null 2>&1 & beat=$!; } && snapshot; } >output 2>&1; then
    [ -z "$beat" ] || kill "$beat" 2>/dev/null
    give_lock_back
    ended 1
    exit 0
fi

{
    sh ./command.sh </dev/null 2>&1 &
    command=$!
    kill "$beat" 2>/dev/null
    beats "$command" >/dev/null 2>&1 &
    beat=$!
    wait "$command"
    echo "$?" >code
    kill "$beat" 2>/dev/null
} | hushed >output
sed -n 's/^- Job id: *\([0-9][0-9]*\).*/\1/p; s/^Submitted batch job \([0-9][0-9]*\).*/\1/p' output >ids
ended "$(cat code 2>/dev/null || echo 137)"
give_lock_back
