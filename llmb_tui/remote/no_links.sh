# The file $1 is named by its true path: a link that has taken the place of it, or of a folder of it, is not followed.
if [ -L "$1" ] || [ "$(cd -P -- "${1%/*}" 2> /dev/null && pwd -P)" != "${1%/*}" ]; then
    echo "A symbolic link is on its path." >&2
    exit 1
fi
