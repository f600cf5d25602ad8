# What a launch (launch.sh) has left, behind status.sh and lock.sh; the current folder is its own. $2 is NeMo-Run's
# index, $4 where its jobs come from. Prints
#
#     waits RUN OWNER      whose launch it waits for
#     began TIME           when the command was started; only then what follows
#     place PATH           where its jobs come from, as a shell and as Slurm call it
#     before ID...         the user's jobs that were there
#     index LINE           what is new in NeMo-Run's index
#     next ID...           the user's jobs when the next launch in the same folder began
#     other ID...          jobs of later launches
#     last working|lost    of the last launch it is not known yet, or not at all, which jobs it has
#     named ID...          the jobs that its output names, where it is longer than the end below
#     file NAME            outputs of batch scripts that are younger
#
# and behind a line `words` the end of its output.
say waits
say began
if [ -s began ]; then
    echo "place $4"
    echo "place $(cd "$4" && pwd -P)"
    echo "before $(tr '\n' ' ' <queue)"
    if [ -s "$2" ]; then
        awk 'FILENAME == "index" { seen[$0] = 1; next } !($0 in seen) { print "index " substr($0, 1, 4000) }' index "$2"
    fi
    later=$(find .. -mindepth 2 -maxdepth 2 -name began -user "$(id -u)" -newer began)
    first='' lost=''
    for began in $(if [ "$later" ]; then ls -tr $later; fi); do
        launch=${began%/*}
        [ "$first" ] || echo "next $(tr '\n' ' ' <"$launch/queue")"
        first=$launch
        # What came between a launch that was lost and the next one is that launch's.
        if [ "$lost" ]; then echo "other $(grep -vxF -f "$lost/queue" "$launch/queue" | tr '\n' ' ')"; fi
        lost=''
        if [ -e "$launch/exit" ]; then echo "other $(tr '\n' ' ' <"$launch/ids")"; else lost=$launch; fi
    done
    if [ "$lost" ]; then
        # Its owner touches the folder, never the link to it.
        holder=$(readlink "../launching.$(id -u)")
        # One that is dead keeps the lock until the next comes, and is lost all the same.
        if [ "$holder" ] && [ -d "../$holder" ] && { ! abandoned "../$holder" || at_work; }; then
            echo "last working"
        else
            echo "last lost"
        fi
    fi
    if [ -s ids ] && [ "$(wc -c <output)" -gt 20000 ]; then echo "named $(tr '\n' ' ' <ids)"; fi
    find "$4" -maxdepth 1 -name 'slurm-*.out' -newer began | sed 's|.*/|file |'
fi
echo "words"
tail -c 20000 output 2>/dev/null
exit 0
