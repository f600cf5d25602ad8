# discard.sh DIRECTORY TOKEN [PATH]...: takes away what lies at these paths below an install directory (with lock.sh and
# inside.sh): each is renamed into .llmb-tui/trash.UID, which is done or not done. Without a path it deletes what is there,
# so that the next one finishes what was cut. Nothing is renamed while an install step is at work. Prints
#
#     \036TOKEN removed PATH     for each that was renamed
#     \036TOKEN gone PATH        for each that is not there
#     \036TOKEN kept PATH        then why, in a line
#     \036TOKEN left COUNT       how much is still in the trash, where that was deleted
cd "$1" || exit 3
root=$(pwd -P) token=$2 trash=.llmb-tui/trash.$(id -u) count=0
shift 2
(umask 077; mkdir -p "$trash")
if ! inside "$trash" || [ ! -O "$trash" ]; then
    echo "$root/$trash is no directory of its own." >&2
    exit 3
fi
device() { stat -c %d "$1"; }

keep() { printf '\036%s kept %s\n%s\n' "$token" "$1" "$2"; }

for path; do
    count=$((count + 1))
    busy=$(installing)
    if [ "$busy" ]; then
        keep "$path" "An install step is at work: $busy"
    elif [ ! -e "$path" ] && [ ! -L "$path" ]; then
        printf '\036%s gone %s\n' "$token" "$path"
    elif ! inside "$path"; then
        keep "$path" "It is a link, or a link is on the way to it."
    elif [ ! -O "$path" ]; then
        keep "$path" "It belongs to another user."
    elif [ "$(device "$path")" != "$(device "$trash")" ]; then
        keep "$path" "It lies on another file system than the install directory."
    elif said=$(mv -- "$path" "$trash/$(date +%s).$$.$count" 2>&1); then
        printf '\036%s removed %s\n' "$token" "$path"
    else
        keep "$path" "$said"
    fi
done
[ "$count" = 0 ] || exit 0
left=0
# Earlier versions had one trash, of whoever removed something first.
for trash in "$trash" .llmb-tui/trash; do
    if ! inside "$trash" || [ ! -O "$trash" ]; then continue; fi
    rm -rf "$trash"/* 2>/dev/null
    # Some programs make directories that nobody may write to.
    if [ "$(ls -A "$trash")" ]; then
        chmod -R u+rwX "$trash"
        rm -rf "$trash"/*
    fi
    left=$((left + $(ls -A "$trash" | wc -l)))
done
printf '\036%s left %s\n' "$token" "$left"
exit 0
