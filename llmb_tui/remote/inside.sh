# What lies below an install directory, which is the current one, and whose real path is $root.
unset CDPATH

# inside PATH: true for what is there, is no link, and lies where its path says: no link is on the way.
inside() {
    case $1 in '' | /* | *[!A-Za-z0-9_./+@=-]*) return 1 ;; esac
    case /$1/ in */../* | */./* | *//*) return 1 ;; esac
    if [ ! -e "$1" ] || [ -L "$1" ]; then return 1; fi
    case $1 in */*) [ "$(cd "${1%/*}" 2>/dev/null && pwd -P)" = "$root/${1%/*}" ] ;; esac
}

# installing: prints the steps of installs that are at work, or whose job waits (lock.sh says which).
installing() {
    for step in .llmb-tui/steps/*; do
        if [ -d "$step/lock" ]; then
            if abandoned "$step/lock" ask; then continue; fi
        else
            job=$(cat "$step/job" 2>/dev/null)
            if [ -z "$job" ] || [ -d "$(ls -d "$step"/ended.* 2>/dev/null | head -n 1)" ] || gone "$job"; then continue; fi
        fi
        printf '%s\n' "${step##*/}"
    done
}
