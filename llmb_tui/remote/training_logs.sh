# training_logs TOKEN BYTES MOST PATH: list the training logs at PATH, a file or a folder, by name. Prints for each
#
#     \036TOKEN log FILE        then its size in bytes
#     \036TOKEN beside FILE     and for files next to it that describe the training: llmb-run's, and the plan of the
#                               our script, at most BYTES + 1 bytes of the file
#     \036TOKEN closed FOLDER   then find's messages about folders below it that cannot be read, one per line
#     \036TOKEN more            at the end, if there are more than MOST logs
#
# Folders of code and checkpoints contain many files, and no log.
token=$1 bytes=$2 most=$3 place=$4
frame() { printf '\036%s %s %s\n' "$token" "$1" "$2"; }
case $place in -*) place=./$place ;; esac
[ -e "$place" ] || { echo "There is no such file or folder." >&2; exit 1; }
if [ -d "$place" ]; then
    [ -r "$place" ] && cd -- "$place" 2> /dev/null || { echo "It may not be read." >&2; exit 1; }
    place=$(pwd)/
else
    case $place in */*) cd -- "${place%/*}" || exit 1 ;; esac
    place=$(pwd)/${place##*/}
fi
found() {
    LC_ALL=C find "$place" -maxdepth 8 \
        \( -name code -o -name checkpoints -o -name nsys_profile \) -prune -o -type f "$@" -print
}
if [ -d "$place" ]; then found -name '*.out' 2> /dev/null; else printf '%s\n' "$place"; fi | sort | {
    count=0
    while IFS= read -r file; do
        count=$((count + 1))
        [ "$count" -le "$most" ] || { frame more "$most"; break; }
        frame log "$file"
        wc -c < "$file" 2> /dev/null
    done
}
beside() {
    if [ -d "$place" ]; then found \( -name 'llmb-config_*.yaml' -o -path '*/configs/plan.json' \); else
        for file in "${place%/*}"/llmb-config_*.yaml "${place%/*}"/configs/plan.json; do
            [ ! -f "$file" ] || printf '%s\n' "$file"
        done
    fi | sort | head -n "$((2 * most))" | while IFS= read -r file; do
        frame beside "$file"
        head -c "$((bytes + 1))" "$file" 2> /dev/null
    done
}
{ closed=$(beside 2>&1 >&3 | grep -v 'No such file'); } 3>&1
[ -z "$closed" ] || { frame closed "$place"; printf '%s\n' "$closed" | head -n 20; }
exit 0
