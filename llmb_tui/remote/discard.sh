# discard.sh DIRECTORY TOKEN [PATH]...: remove these paths below an install directory (needs lock.sh and inside.sh). Each
# path is renamed into .llmb-tui/trash.UID, which either happens or does not. Without a path, the trash is deleted, so that
# the next call completes an interrupted one. Nothing is renamed while an install step is active. Prints
#
#     \036TOKEN removed PATH     for each renamed path
#     \036TOKEN gone PATH        for each missing path
#     \036TOKEN kept PATH        then the reason, in one line
#     \036TOKEN left COUNT       after a deletion: number of entries that are still in the trash
#
# The group may write to the install directory, so another member can rename any entry, even the trash, and replace it by
# a link: no name there is safe from that. The trash therefore belongs to the user, with mode 0700, and is held open after
# the check: entries are renamed into the open directory, and deleted from inside it.
top "$1" || exit 3
token=$2 trash=.llmb-tui/trash.$(id -u) count=0
shift 2

# enter_trash PATH: enter a trash of this user, which no other user can enter from then on.
enter_trash() { enter_own "$1" && chmod 700 .; }

if ! descend .llmb-tui; then exit 3; fi
# At least, only its owner may then rename what the other members have in there.
[ ! -O . ] || chmod +t .
mkdir -m 700 "./${trash##*/}" 2>/dev/null
if ! enter_trash "$trash"; then
    echo "$root/$trash is not a directory of this user." >&2
    exit 3
fi
exec 7<.
device() { stat -c %d "$1"; }
held=$(device .)

keep() { printf '\036%s kept %s\n%s\n' "$token" "$path" "$1"; }

# take NAME: move $path into the trash, under that name.
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
# Earlier versions had one trash, owned by the first user who removed something.
for trash in "$trash" .llmb-tui/trash; do
    if ! enter_trash "$trash"; then continue; fi
    rm -rf ./* 2>/dev/null
    # Some programs make read-only directories. From the top down, each becomes private before it is read: no other
    # member can then replace its entries, and so redirect the next chmod to a link.
    if [ "$(ls -A)" ]; then
        find . -type d \( ! -user "$(id -u)" -prune -o \( ! -perm -700 -o -perm /022 \) -exec chmod u+rwx,go-w {} \; \)
        rm -rf ./*
    fi
    left=$((left + $(ls -A | wc -l)))
done
printf '\036%s left %s\n' "$token" "$left"
exit 0
