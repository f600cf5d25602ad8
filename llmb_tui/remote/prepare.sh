# Check what a submission needs, and make its folders, links and copies, behind there.sh and
# inside.sh:
#
#     prepare.sh INSTALL OWN TOKEN COUNT NEEDED... COUNT FOLDER... COUNT [FILE LINK]... [FILE COPY]...
#
# OWN is the folder of the run, to which no other user may write, whatever the umask: later writes into it follow no link.
# TOKEN is a required file below the home directory, or empty; FILE of a link is there as well, and an empty file replaces
# the link if FILE is missing. May be repeated. Exits with 4 if the token is missing, with 3 if another required item is,
# and names it.
install=$1 own=$2
shift 2
[ -z "$1" ] || [ -s "$HOME/$1" ] || exit 4
needed=$2
shift 2
while [ "$needed" -gt 0 ]; do
    there "$1" || { echo "$1" >&2; exit 3; }
    shift
    needed=$((needed - 1))
done
folders=$1
top "$install" && fresh_folder "${own%/*}" || exit 1
own_folder() {
    (umask go-w && fresh_folder "$1") || return 1
    if ! (enter_own "${1#"$install"/}"); then
        echo "$1 belongs to another user." >&2
        return 1
    fi
}
own_folder "$own" || exit 1
shift
while [ "$folders" -gt 0 ]; do
    case $1 in "$own"/*) own_folder "$1" ;; *) fresh_folder "$1" ;; esac || exit 1
    shift
    folders=$((folders - 1))
done
links=$1
shift
# made_in FILE COMMAND...: run it in the folder of FILE.
made_in() (at_parent "$1" && shift && "$@")
copy() { set -C && cat "$1" >"./$2.$$" && renamed "./$2.$$" "./$2"; }
empty() { rm -f "./$1" && set -C && : >"./$1"; }
while [ "$links" -gt 0 ]; do
    if [ -s "$HOME/$1" ]; then made_in "$2" ln -sfn "$HOME/$1" "./${2##*/}"; else made_in "$2" empty "${2##*/}"; fi || exit 1
    shift 2
    links=$((links - 1))
done
while [ $# -gt 0 ]; do
    made_in "$2" copy "$1" "${2##*/}" || exit 1
    shift 2
done
