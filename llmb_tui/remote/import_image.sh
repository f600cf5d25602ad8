# import_image IMAGE REFERENCE CREDENTIALS ARCHITECTURE BROUGHT: import the image, or copy the one that the user brought.
# CREDENTIALS is the file with the registry's key below the home directory, ARCHITECTURE is the nodes', which the login
# node need not have. Until the image is complete, its layers are kept next to the step's log, so that an attempt after a
# failed one does not download them again; the name of an incomplete image begins with a dot. Behind
# there.sh.
import_image() {
    image=$1 reference=$2 credentials=$HOME/$3 architecture=$4 brought=$5
    if [ -s "$image" ]; then
        if is_image "$image"; then echo "The image is there."; exit 0; fi
        echo "$image is there, but is no image."
        exit 1
    fi
    partial=$(dirname "$image")/.$(basename "$image").$owner
    trap 'away "$partial"' EXIT
    away "$(dirname "$image")/.$(basename "$image")".*
    if [ -s "$brought" ]; then
        is_image "$brought" || { echo "$brought is not whole."; exit 1; }
        echo "The image comes from $brought."
        if [ -L "$brought" ]; then echo "$brought is a symbolic link: bring the file itself."; exit 1; fi
        (at_parent "$partial" && { ln -P "$brought" "./${partial##*/}" 2>/dev/null || (set -C && cat "$brought" >"./${partial##*/}"); })
        rename "$partial" "${image##*/}"
        exit 0
    fi
    ENROOT_CACHE_PATH=$dir/cache
    export ENROOT_CACHE_PATH
    fresh_folder "$ENROOT_CACHE_PATH"
    away "$ENROOT_CACHE_PATH"/*.*
    if [ -s "$credentials" ]; then
        ENROOT_CONFIG_PATH=$(dirname "$credentials")
        export ENROOT_CONFIG_PATH
    fi
    (at_parent "$partial" && enroot import --output "$partial" --arch "$architecture" "$reference")
    is_image "$partial" || { echo "enroot made no image."; exit 1; }
    rename "$partial" "${image##*/}"
    away "$ENROOT_CACHE_PATH"
}
