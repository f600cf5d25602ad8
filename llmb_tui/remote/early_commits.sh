# Looks for the commits of an install step before the install, in a directory that is removed again. $1 is the file
# that says that the install has found them; the step's own work stands behind this, with its own arguments.
[ ! -s "$1" ] || { echo "The install has found them."; exit 0; }
owner=$$
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
shift
top "$dir" || exit 1
install=$dir
set -- "$dir/found" "$@"
exec 2>&1
