#!/bin/sh
# Replaces git while a setup script runs, so that the log shows the progress of a clone.
own=$(dirname "$0")
oldifs=$IFS IFS=:
for folder in $PATH; do
    if [ "$folder" != "$own" ] && [ -x "$folder/git" ]; then
        IFS=$oldifs
        if [ "$1" = clone ]; then
            shift
            exec "$folder/git" clone --progress "$@"
        fi
        exec "$folder/git" "$@"
    fi
done
echo "git: not found" >&2
exit 127
