# Look for the commits of an install step before the install, in a temporary directory. $1 is the file that marks the
# step's success; the step's own work follows this text, with its own arguments.
[ ! -s "$1" ] || { echo "The install has found them."; exit 0; }
owner=$$
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
shift
top "$dir" || exit 1
install=$dir
set -- "$dir/found" "$@"
exec 2>&1
