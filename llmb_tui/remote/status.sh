# Print the traces of a submission in FOLDER; HOW is `look`, or `start` (with HELPER, unless it was started before), or
# `withdraw` (nothing will ever be submitted). Behind inside.sh and group.sh:
#
#     status.sh INSTALL FOLDER HOW NAME HELPER [ARGUMENT]...
#
# HELPER is the text of the script NAME, and empty unless it may be started. It gets INSTALL, FOLDER and the arguments.
# The creator of claim decides: the helper by submitting, this script by preventing every submission. setsid lets the
# helper outlive its session, and gives it a process group, so that its remaining processes can be detected: if that is
# checked before the files are read, their content is final. Text that is appended to this script reads the rest, with the
# helper's arguments from $2: it prints lines `NAME VALUE`, then a line `words`, and then the output of the
# submission.
install=$1 folder=$2 how=$3 name=$4 helper=$5
shift 4
case $how:$folder in
look:*) cd "$folder" 2>/dev/null ;;
*:"$install"/*) top "$install" 2>/dev/null && enter "${folder#"$install"/}" ;;
*) cd "$folder" 2>/dev/null ;; # the profile's install directory has changed
esac || exit 0
case $how in
start)
    if [ ! -h claim ]; then
        shift
        nohup $(command -v setsid) sh -c "$helper" "$name" "$install" "$folder" "$@" </dev/null >/dev/null 2>&1 &
        set -- "$helper" "$@"
    fi
    ;;
withdraw)
    [ ! -O . ] || ln -sn withdrawn claim 2>/dev/null
    ;;
esac
echo # ends a line that the login shell may have begun
claim=$(readlink claim)
owner=${claim%% *}
group=${claim#* }
if [ "${owner##*@}" = "$(uname -n)" ] && [ ! -e exit ]; then
    group=${group%% *}
    if [ "$group" ] && ! group_lives "$group"; then echo gone; fi
fi
printf 'claim %s\n' "$claim" # a user's name may have a backslash, which some echo interpret
echo "now $(date +%s)"
# say NAME: print the file of that name as a line.
say() {
    line=''
    { read -r line <"$1"; } 2>/dev/null
    printf '%s %s\n' "$1" "$line"
}
say beat
say exit
