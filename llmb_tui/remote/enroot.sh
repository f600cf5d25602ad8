#!/bin/sh
# Replaces enroot while a setup script runs: `enroot import` fails if the image already exists, and leaves a partial image
# after an interruption. Other commands are passed to enroot.
own=$(dirname "$0")
oldifs=$IFS IFS=: enroot=
for folder in $PATH; do
    if [ "$folder" != "$own" ] && [ -x "$folder/enroot" ]; then
        enroot=$folder/enroot
        break
    fi
done
IFS=$oldifs
if [ -z "$enroot" ] && { [ "$1" != import ] || [ ! -s "${3-}" ]; }; then
    echo "sh: enroot: not found" >&2
    exit 127
fi
if [ "$1" = import ] && { [ "$2" = --output ] || [ "$2" = -o ]; }; then
    image=$3
    if [ -s "$image" ]; then
        echo "The image is there: $image"
        exit 0
    fi
    partial=$(dirname "$image")/.$(basename "$image").$(uname -n).$$
    shift 3
    "$enroot" import --output "$partial" "$@" && mv "$partial" "$image" && exit
    code=$?
    rm -f "$partial"
    exit "$code"
fi
exec "$enroot" "$@"
