# Refuse the file $1 unless its path is its true path, so that a link in place of it or of its folder is not followed.
if [ -L "$1" ] || [ "$(cd -P -- "${1%/*}" 2> /dev/null && pwd -P)" != "${1%/*}" ]; then
    echo "A symbolic link is on its path." >&2
    exit 1
fi
