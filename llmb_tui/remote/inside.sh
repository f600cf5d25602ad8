# Functions for paths below an install directory, whose true path is $root. Other members of the group may write there, so
# a path that was valid when it was checked can lead elsewhere a moment later, after a rename and a symbolic link. These
# functions therefore enter a directory, check its path from inside, and let the caller name its contents from there, as
# ./NAME. A command that acts on such a name must not follow a link: `rm`, `renamed`, and `>` after `set -C`.
unset CDPATH

# here: print the true path of the current directory, as the kernel has it. Bash's built-in pwd looks it up by name.
here() { env pwd -P; }

# top DIRECTORY: enter an install directory, which may be reached by links, and set `root`.
top() {
    if cd "$1" 2>/dev/null; then root=$(here); else
        ls -d "$1/." >/dev/null # prints the reason, which not every shell does
        return 1
    fi
}

# proper PATH: true for a path below an install directory whose name this program could have given.
proper() { case /$1/ in *[!A-Za-z0-9_./+@=-]* | */../* | */./* | *//*) false ;; esac }

# enter [PATH]: enter this directory below the install directory, or the install directory. False if a link is on the way.
enter() {
    { [ -z "${1-}" ] || proper "$1"; } || return 1
    cd "$root${1:+/$1}" 2>/dev/null && [ "$(here)" = "$root${1:+/$1}" ]
}

# enter_parent PATH: enter the directory that contains it.
enter_parent() { proper "$1" && case $1 in */*) enter "${1%/*}" ;; *) enter ;; esac }

# enter_own PATH: enter a directory of this user, to which no other user may write from then on.
enter_own() { enter "$1" && [ -O . ] && chmod go-w .; }

# descend PATH: enter this directory below the install directory, and create missing parts. Prints the reason of a failure.
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

# renamed NAME NAME: rename within the current directory, or into a directory that is held open. Never moves into a
# directory, or a link to one, that has the second name.
renamed() {
    if mv --version >/dev/null 2>&1; then mv -fT -- "$1" "$2"; else mv -fh -- "$1" "$2"; fi
}

# For install steps, whose paths begin with $install:

# fresh_folder PATH...: create these directories if they are missing.
fresh_folder() {
    for path; do
        case $path in
            "$install") (enter) ;;
            "$install"/*) (descend "${path#"$install"/}") ;;
            *) echo "$path does not lie below $install." >&2 && false ;;
        esac || return 1
    done
}

# away PATH...: remove these paths.
away() {
    for path; do
        if [ ! -e "$path" ] && [ ! -L "$path" ]; then continue; fi
        (at_parent "$path" && rm -rf -- "./${path##*/}") || return 1
    done
}

# put FILE: write stdin to the file, completely or not at all, and replace an existing one.
put() (
    at_parent "$1" && set -C && cat >"./${1##*/}.$owner" && renamed "./${1##*/}.$owner" "./${1##*/}"
)

# rename PATH NAME: rename within its directory.
rename() (at_parent "$1" && renamed "./${1##*/}" "./$2")

# at_parent PATH: `enter_parent` of such a path; prints the reason of a failure.
at_parent() {
    case ${1#"$install"/} in
        */*) path=${1#"$install"/} && enter "${path%/*}" ;;
        *) enter ;;
    esac && return
    echo "${1%/*} is a symbolic link, or lies behind one; links below an install directory are not followed." >&2
    return 1
}

# shared: true if the profile lets the group write to new files.
shared() { case $(umask -S) in *g=*w*,*) ;; *) false ;; esac }

# inside PATH: true if it exists, is not a link, and is where its path says: no link is on the way.
inside() { (enter_parent "$1" && [ -e "./${1##*/}" ] && [ ! -L "./${1##*/}" ]); }

# installing: print the steps of active installs, also if their job waits (see lock.sh).
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
