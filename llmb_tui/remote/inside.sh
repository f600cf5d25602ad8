# What lies below an install directory, whose true path is $root. Other members of the group may write there, so a path
# that was right when it was checked can lead elsewhere a moment later, by a rename and a symbolic link. These functions
# therefore enter a directory, check from inside where it is, and leave the caller to name its contents from there, as
# ./NAME. What acts on such a name must not follow a link: `rm`, `renamed`, and `>` behind `set -C`.
unset CDPATH

# here: prints the true path of the current directory, as the kernel has it. The built-in pwd of bash looks it up by name.
here() { env pwd -P; }

# top DIRECTORY: enters an install directory, which may be reached by links, and sets `root`.
top() { cd "$1" && root=$(here); }

# proper PATH: true for a path below an install directory that has a name such as the program gives.
proper() { case /$1/ in *[!A-Za-z0-9_./+@=-]* | */../* | */./* | *//*) false ;; esac }

# enter [PATH]: enters this directory below the install directory, or that itself. False where a link is on the way.
enter() {
    { [ -z "${1-}" ] || proper "$1"; } || return 1
    cd "$root${1:+/$1}" 2>/dev/null && [ "$(here)" = "$root${1:+/$1}" ]
}

# enter_parent PATH: enters the directory that holds it.
enter_parent() { proper "$1" && case $1 in */*) enter "${1%/*}" ;; *) enter ;; esac }

# descend PATH: enters this directory below the install directory, and makes what is missing of it. Says why it cannot.
descend() {
    enter || return 1
    rest=$1/ at=
    while [ "$rest" ]; do
        at=$at${at:+/}${rest%%/*} rest=${rest#*/}
        problem=$(mkdir "./${at##*/}" 2>&1)
        if [ -L "./${at##*/}" ] || { [ -d "./${at##*/}" ] && ! enter "$at"; }; then
            echo "$root/$at is a symbolic link, or lies behind one; links below an install directory are not followed." >&2
            return 1
        elif [ "$(here)" != "$root/$at" ]; then
            echo "$problem" >&2
            return 1
        fi
    done
}

# renamed NAME NAME: within the current directory, or into one that is held open. A directory, or a link to one, in the
# place of the second is never moved into.
renamed() {
    if mv --version >/dev/null 2>&1; then mv -fT -- "$1" "$2"; else mv -fh -- "$1" "$2"; fi
}

# inside PATH: true for what is there, is no link, and lies where its path says: no link is on the way.
inside() { (enter_parent "$1" && [ -e "./${1##*/}" ] && [ ! -L "./${1##*/}" ]); }

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
