# there PATH...: true if each of these exists: a directory, a non-empty file, a complete image. ~/ is the home
# directory.
there() {
    for path; do
        case $path in "~/"*) path=$HOME/${path#"~/"} ;; esac
        # NFS remembers that it was missing a moment ago, until the directory is opened.
        for _ in "${path%/*}"/*; do break; done
        [ -d "$path" ] || [ -s "$path" ] || return 1
        case $path in *.sqsh) is_image "$path" || return 1 ;; esac
    done
}

# is_image FILE: true for a complete image. mksquashfs writes the first bytes last, and a copy its last ones: a squashfs of
# version 4 contains its number of bytes.
is_image() {
    set -- "$1" $(od -A n -v -t u4 -N 48 "$1" 2>/dev/null)
    [ "${2-}" = 1936814952 ] || return 1 # hsqs
    [ "${9-}" = 4 ] || return 0
    [ "$#" = 13 ] && [ "$(wc -c <"$1")" -ge "$((${13} * 4294967296 + ${12}))" ]
}
