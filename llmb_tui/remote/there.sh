# there PATH...: true where each of these is there: a directory, or a file that is not empty.
there() {
    for path; do
        # That it was missing a moment ago is remembered by NFS, until the directory is opened.
        for _ in "${path%/*}"/*; do break; done
        [ -d "$path" ] || [ -s "$path" ] || return 1
    done
}
