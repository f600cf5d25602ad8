# What lies below an install directory, whose true path is $root. Other members of the group may write there, so a path
# that was right when it was checked can lead elsewhere a moment later, by a rename and a symbolic link. These functions
# therefore enter a directory, check from inside where it is, and leave the caller to name its contents from there, as
# ./NAME. What acts on such a name must not follow a link: `rm`, `renamed`, and `>` behind `set -C`.
unset CDPATH

# here: prints the true path of the current directory, as the kernel has it. The built-in pwd of bash looks it up by name.
here() { env pwd -P; }

# top DIRECTORY: enters an install directory, which may be reached by links, and sets `root`.
top() {
    if cd "$1" 2>/dev/null; then root=$(here); else
        ls -d "$1/." >/dev/null # says why, which not every shell does
        return 1
    fi
}

# proper PATH: true for a path below an install directory that has a name such as the program gives.
proper() { case /$1/ in *[!A-Za-z0-9_./+@=-]* | */../* | */./* | *//*) false ;; esac }

# enter [PATH]: enters this directory below the install directory, or that itself. False where a link is on the way.
enter() {
    { [ -z "${1-}" ] || proper "$1"; } || return 1
    cd "$root${1:+/$1}" 2>/dev/null && [ "$(here)" = "$root${1:+/$1}" ]
}

# enter_parent PATH: enters the directory that holds it.
enter_parent() { proper "$1" && case $1 in */*) enter "${1%/*}" ;; *) enter ;; esac }

# enter_own PATH: enters a directory of this user's, to which no other user may write from here on.
enter_own() { enter "$1" && [ -O . ] && chmod go-w .; }

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

# For install steps, which name what they make by paths that begin with $install:

# fresh_folder PATH...: makes these directories where they are missing.
fresh_folder() {
    for path; do
        case $path in
            "$install") (enter) ;;
            "$install"/*) (descend "${path#"$install"/}") ;;
            *) echo "$path does not lie below $install." >&2 && false ;;
        esac || return 1
    done
}

# away PATH...: removes what is at these paths.
away() {
    for path; do
        if [ ! -e "$path" ] && [ ! -L "$path" ]; then continue; fi
        (at_parent "$path" && rm -rf -- "./${path##*/}") || return 1
    done
}

# put FILE: writes its stdin there, all of it or nothing, in place of what is there.
put() (
    at_parent "$1" && set -C && cat >"./${1##*/}.$owner" && renamed "./${1##*/}.$owner" "./${1##*/}"
)

# rename PATH NAME: within its directory.
rename() (at_parent "$1" && renamed "./${1##*/}" "./$2")

# at_parent PATH: `enter_parent` of such a path, which says why it cannot.
at_parent() {
    case ${1#"$install"/} in
        */*) path=${1#"$install"/} && enter "${path%/*}" ;;
        *) enter ;;
    esac && return
    echo "${1%/*} is a symbolic link, or lies behind one; links below an install directory are not followed." >&2
    return 1
}

# shared: true where the profile lets the group write to what is made.
shared() { case $(umask -S) in *g=*w*,*) ;; *) false ;; esac }

# inside PATH: true for what is there, is no link, and lies where its path says: no link is on the way.
inside() { (enter_parent "$1" && [ -e "./${1##*/}" ] && [ ! -L "./${1##*/}" ]); }

# installing: prints the steps of installs that are at work, or whose job waits (lock.sh says which).
installing() {
    for step in .llmb-tui/steps/*; do
        if [ -d "$step/lock" ]; then
            if abandoned "$step/lock" ask; then continue; fi
        else
            job=$([ ! -f "$step/job" ] || cat "$step/job" 2>/dev/null)
            if [ -z "$job" ] || [ -d "$(ls -d "$step"/ended.* 2>/dev/null | head -n 1)" ] || gone "$job"; then continue; fi
        fi
        printf '%s\n' "${step##*/}"
    done
}
