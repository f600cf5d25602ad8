# What a submission has left on the cluster: FOLDER is where, HOW is `look`, or `start` (by HELPER, unless somebody
# did), or `withdraw` (so that nothing ever will be submitted). Behind inside.sh and group.sh:
#
#     status.sh INSTALL FOLDER HOW NAME HELPER [ARGUMENT]...
#
# HELPER is the text of the script NAME, and empty unless it may be started. It gets INSTALL, FOLDER and the arguments.
# Whoever creates claim decides: the helper by submitting, this by making sure that nothing ever will be. setsid lets
# the helper outlive its session, and gives it a process group of its own, so that it can be seen whether anything of
# it is still running: asked before the files are read, it makes them final. What is appended to this reads the rest,
# with the helper's arguments from $2: it prints lines `NAME VALUE`, then a line `words`, and then what the submission
# said.
install=$1 folder=$2 how=$3 name=$4 helper=$5
shift 4
case $how:$folder in
look:*) cd "$folder" 2>/dev/null ;;
*:"$install"/*) top "$install" 2>/dev/null && enter "${folder#"$install"/}" ;;
*) cd "$folder" 2>/dev/null ;; # the profile has another install directory now
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
echo # what a login shell has printed may have no line end
claim=$(readlink claim)
owner=${claim%% *}
group=${claim#* }
if [ "${owner##*@}" = "$(uname -n)" ] && [ ! -e exit ]; then
    group=${group%% *}
    if [ "$group" ] && ! group_lives "$group"; then echo gone; fi
fi
printf 'claim %s\n' "$claim" # a user's name may have a backslash, which some echo read
echo "now $(date +%s)"
# say NAME: the line of the file of that name.
say() {
    line=''
    { read -r line <"$1"; } 2>/dev/null
    printf '%s %s\n' "$1" "$line"
}
say beat
say exit
