# Write stdin to a file in a folder of a run, completely or not at all, behind inside.sh:
#
#     put.sh INSTALL FILE BYTES
install=$1
path=${2#"$install"/}
if ! { top "$install" && enter_own "${path%/*}"; }; then
    echo "${2%/*} belongs to another user, or a link is on the way to it." >&2
    exit 1
fi
umask 077
name=./${path##*/}
rm -f "$name.$$"
set -C
if cat >"$name.$$"; then
    if [ "$(wc -c <"$name.$$")" -eq "$3" ]; then renamed "$name.$$" "$name" && exit; else echo "The file was cut short." >&2; fi
fi
rm -f "$name.$$"
exit 1
