# left_files TOKEN MOST FOLDER: list the files below a run's folder, without code and checkpoints. Prints
#
#     \036TOKEN folder TRUE_PATH
#     \036TOKEN file NAME       then its size in bytes
#     \036TOKEN link NAME       and for an entry that is neither a file nor a folder
#     \036TOKEN special NAME
#     \036TOKEN more            at the end, if there are more than MOST
#
# NAME begins with `./`; a name with a newline appears as two names, each with the type that is found for it.
token=$1 most=$2
frame() { printf '\036%s %s %s\n' "$token" "$1" "$2"; }
[ -d "$3" ] || { echo "There is no such folder." >&2; exit 1; }
cd -P -- "$3" 2> /dev/null || { echo "It may not be looked into." >&2; exit 1; }
frame folder "$(pwd -P)"
find . -maxdepth 8 -type d \( -name code -o -name checkpoints -o -name .git \) -prune -o ! -type d -print 2> /dev/null | sort | {
    count=0
    while IFS= read -r name; do
        count=$((count + 1))
        [ "$count" -le "$most" ] || { frame more ""; break; }
        if [ -L "$name" ]; then
            frame link "$name"
        elif [ -f "$name" ]; then
            frame file "$name"
            wc -c < "$name" 2> /dev/null
        else
            frame special "$name"
        fi
    done
}
exit 0
