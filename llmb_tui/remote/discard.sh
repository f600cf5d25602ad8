# discard.sh DIRECTORY TOKEN [PATH]...: takes away what lies at these paths below an install directory (with lock.sh and
# inside.sh): each is renamed into .llmb-tui/trash.UID, which is done or not done. Without a path it deletes what is there,
# so that the next one finishes what was cut. Nothing is renamed while an install step is at work. Prints
#
#     \036TOKEN removed PATH     for each that was renamed
#     \036TOKEN gone PATH        for each that is not there
#     \036TOKEN kept PATH        then why, in a line
#     \036TOKEN left COUNT       how much is still in the trash, where that was deleted
#
# The group may write to the install directory, so another member can rename whatever lies in it, the trash included, and
# put a link in its place: no name there is proof against that. The trash is therefore the user's own, with mode 0700, and
# held open from the check on: things are renamed into what is open, and deleted from inside.
top "$1" || exit 3
token=$2 trash=.llmb-tui/trash.$(id -u) count=0
shift 2

# enter_trash PATH: enters a trash of this user's, which no other user may enter from here on.
enter_trash() { enter_own "$1" && chmod 700 .; }

if ! descend .llmb-tui; then exit 3; fi
# Then at least only its owner may rename what the other members have in there.
[ ! -O . ] || chmod +t .
mkdir -m 700 "./${trash##*/}" 2>/dev/null
if ! enter_trash "$trash"; then
    echo "$root/$trash is no directory of its own." >&2
    exit 3
fi
exec 7<.
device() { stat -c %d "$1"; }
held=$(device .)

keep() { printf '\036%s kept %s\n%s\n' "$token" "$path" "$1"; }

# take NAME: moves $path into the trash, under that name.
take() {
    busy=$(enter && installing)
    if [ "$busy" ]; then
        keep "An install step is at work: $busy"
    elif [ ! -e "$root/$path" ] && [ ! -L "$root/$path" ]; then
        printf '\036%s gone %s\n' "$token" "$path"
    elif ! enter_parent "$path" || [ -L "./${path##*/}" ]; then
        keep "It is a link, or a link is on the way to it."
    elif [ ! -O "./${path##*/}" ]; then
        keep "It belongs to another user."
    elif [ "$(device "./${path##*/}")" != "$held" ]; then
        keep "It lies on another file system than the install directory."
    elif said=$(renamed "./${path##*/}" "/proc/self/fd/7/$1" 2>&1); then
        printf '\036%s removed %s\n' "$token" "$path"
    else
        keep "$said"
    fi
}

for path; do
    count=$((count + 1))
    (take "$(date +%s).$$.$count")
done
[ "$count" = 0 ] || exit 0
left=0
# Earlier versions had one trash, of whoever removed something first.
for trash in "$trash" .llmb-tui/trash; do
    if ! enter_trash "$trash"; then continue; fi
    rm -rf ./* 2>/dev/null
    # Some programs make read-only directories. From the top down each becomes the user's alone before it
    # is read: no other member can swap what is in it, and so lead the next chmod to a link.
    if [ "$(ls -A)" ]; then
        find . -type d \( ! -user "$(id -u)" -prune -o \( ! -perm -700 -o -perm /022 \) -exec chmod u+rwx,go-w {} \; \)
        rm -rf ./*
    fi
    left=$((left + $(ls -A | wc -l)))
done
printf '\036%s left %s\n' "$token" "$left"
exit 0
