# checkout URL TAG REPOSITORY STAMPS STAMP: check out the repository at a tag. An existing checkout is used if it is of
# that tag and unchanged; otherwise it is left alone. A new checkout invalidates what was set up from another one, so the
# files in STAMPS are removed.
checkout() {
    url=$1 tag=$2 repository=$3 stamps=$4 stamp=$5
    if [ -e "$repository" ]; then
        is_checkout "$repository" "$tag" || exit 1
        echo "The repository is there."
        note "$stamp"
        return
    fi
    parent=$(dirname "$repository")
    name=$(basename "$repository")
    fresh_folder "$parent"
    away "$parent/.$name".* "$stamps"
    LC_ALL=C git clone --progress --depth 1 -c advice.detachedHead=false --branch "$tag" "$url" "$parent/.$name.$owner"
    is_checkout "$parent/.$name.$owner" "$tag" || exit 1
    rename "$parent/.$name.$owner" "$name"
    note "$stamp"
}

# is_checkout REPOSITORY TAG: true for a checkout of that tag without local changes; otherwise it prints what differs. A
# checkout of another user is accepted if several users share an install; git must allow this for its path without links.
is_checkout() {
    if [ ! -e "$1/.git" ]; then
        echo "$1 is there, but is no git checkout of $2."
        return 1
    fi
    trusted=safe.directory=$(cd "$1" && pwd -P)
    at=$(git -C "$1" -c "$trusted" rev-parse --verify HEAD) || at=
    if [ -z "$at" ] || [ "$at" != "$(git -C "$1" -c "$trusted" rev-parse -q --verify "refs/tags/$2^{commit}")" ]; then
        found=$(git -C "$1" -c "$trusted" describe --tags --always 2>/dev/null) || found='something else'
        echo "$1 is no checkout of $2 but of $found."
        return 1
    fi
    changes=$(git -C "$1" -c "$trusted" status --porcelain --untracked-files=no)
    if [ "$changes" ]; then
        echo "$1 has local changes: $(printf '%s\n' "$changes" | head -n 1)"
        return 1
    fi
}
