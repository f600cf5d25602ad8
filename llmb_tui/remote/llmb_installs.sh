# llmb_installs TOKEN BYTES MOST DIRECTORY...: look for installations of NVIDIA's own tools in the directories, in
# $LLMB_INSTALL, and (with places.sh) in the usual shared places for folders with an installation's name. Prints for each
#
#     \036TOKEN config DIRECTORY      then at most BYTES + 1 bytes of its cluster_config.yaml
#     \036TOKEN release DIRECTORY     then the release of its recipes
#     \036TOKEN images DIRECTORY      then the names of its container images, one per line
#     \036TOKEN venvs DIRECTORY       then the names of its Python environments, one per line
#
# or `\036TOKEN closed DIRECTORY` if the file may not be read.
token=$1 bytes=$2 most=$3
shift 3
seen=
frame() { printf '\036%s %s %s\n' "$token" "$1" "$2"; }

# The value of a key of the file, at any level.
value() { sed -n "s/^ *$1: *//p" "$2" 2>/dev/null | head -n 1 | tr -d "\"'"; }

look() {
    file=$1/cluster_config.yaml
    if [ -z "$1" ] || [ "$most" -le 0 ] || [ ! -f "$file" ]; then return; fi
    real=$(cd "$1" && pwd -P) || return
    case $seen in *"|$real|"*) return ;; esac
    seen="$seen|$real|"
    most=$((most - 1))
    if [ ! -r "$file" ]; then
        frame closed "$1"
        return
    fi
    frame config "$1"
    head -c "$((bytes + 1))" "$file"
    frame release "$1"
    repository=$(value llmb_repo "$file")
    value llmb_version "$repository/release.yaml" | grep . ||
        cat "$repository"/*/metadata.yaml 2>/dev/null | sed -n 's/^ *gsw_version: *//p' | head -n 1
    root=$(value llmb_install "$file")
    [ -d "$root" ] || root=$1
    frame images "$1"
    for image in "$root"/images/*.sqsh; do [ ! -s "$image" ] || printf '%s\n' "${image##*/}"; done | head -n 64
    frame venvs "$1"
    for python in "$root"/venvs/*/bin/python3; do
        venv=${python%/bin/python3}
        if [ -e "$python" ] || [ -L "$python" ]; then printf '%s\n' "${venv##*/}"; fi
    done | head -n 64
}

among() {
    case $1 in '' | /) return ;; esac
    for folder in "$1"/*[Ll][Ll][Mm][Bb]* "$1"/llmb/*; do look "$folder"; done
}

for place; do look "$place"; done
look "$LLMB_INSTALL"
for place; do among "${place%/*}"; done
each_place among
exit 0
