# network_lines.sh TOKEN FOLDER: NCCL's network lines in the files FOLDER/nccl/HOST.PID of a run (needs inside.sh).
# Prints
#
#     \036TOKEN lines
#
# and then for each file `== HOST`, the first line with `Using network`, and the first lines of channels: one of each
# transport, and over the network one for each of at most four pairs of ranks. At most 20 lines of 300 bytes per file, and
# 256 KiB in total. Links are not followed.
LC_ALL=C; export LC_ALL
cd -P -- "$2" 2> /dev/null || { echo "There is no such folder." >&2; exit 1; }
root=$(pwd -P)
inside nccl && cd nccl 2> /dev/null && [ "$(pwd -P)" = "$root/nccl" ] || { echo "There are no such files." >&2; exit 1; }
printf '\036%s lines\n' "$1"
for file in *.[0-9]*; do
    case $file in *[!A-Za-z0-9_.-]*) continue ;; esac
    [ -f "$file" ] && [ ! -L "$file" ] || continue
    # The network and the first channels come first; later communicators repeat them.
    head -c 4194304 "./$file" | awk -v host="${file%.*}" '
        index($0, " NCCL INFO ") == 0 { next }
        / NCCL INFO (Channel [^ ]+ : )?Using network / { if (network == "") network = substr($0, 1, 300) "\n"; next }
        / NCCL INFO Channel .* via / {
            split($0, half, " via ")
            split(half[2], part, "[/ ]")
            transport = part[1] "/" part[2]
            if (part[1] == "NET") {
                pair = $0
                sub(/.*NCCL INFO Channel [^ ]+ : /, "", pair)
                sub(/ via .*/, "", pair)
                if (!((transport, pair) in seen) && count[transport] < 4 && lines < 19) {
                    seen[transport, pair] = 1
                    count[transport]++
                    lines++
                    net = net substr($0, 1, 300) "\n"
                }
            } else if (!(transport in seen) && others < 19) {
                seen[transport] = 1
                other[++others] = substr($0, 1, 300)
            }
        }
        END {
            if (network net == "" && others == 0) exit
            printf "== %s\n%s%s", host, network, net
            for (n = 1; n <= others && lines + n < 20; n++) print other[n]
        }'
done | awk '{ size += length($0) + 1; if (size > 262144) exit; print }'
exit 0
