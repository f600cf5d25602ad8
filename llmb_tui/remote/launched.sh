# Print the traces of a launch (launch.sh), behind status.sh and lock.sh; the current folder is the launch's. $2 is
# NeMo-Run's index, $4 the folder from which its jobs are submitted. Prints
#
#     waits RUN OWNER      the launch that it waits for
#     began TIME           start of the command; without it, the following lines are missing
#     place PATH           folder from which its jobs are submitted, in the shell's and in Slurm's form
#     before ID...         the user's jobs before the start
#     index LINE           new lines of NeMo-Run's index
#     next ID...           the user's jobs when the next launch in the same folder began
#     other ID...          jobs of later launches
#     last working|lost    jobs of the last launch: not known yet, or never
#     named ID...          the jobs that its output names, if it is longer than the end below
#     file NAME            younger outputs of batch scripts
#
# and after a line `words` the end of its output.
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
        # Jobs that appeared between a lost launch and the next one belong to the lost launch.
        if [ "$lost" ]; then echo "other $(grep -vxF -f "$lost/queue" "$launch/queue" | tr '\n' ' ')"; fi
        lost=''
        if [ -e "$launch/exit" ]; then echo "other $(tr '\n' ' ' <"$launch/ids")"; else lost=$launch; fi
    done
    if [ "$lost" ]; then
        # The owner touches the folder, never the link to it.
        holder=$(readlink "../launching.$(id -u)")
        # A dead launch keeps the lock until the next one comes, and still counts as lost.
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
