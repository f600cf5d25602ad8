# Functions that the steps of a recipe's own procedure share: sources of downloads, and one active step at a time.

# Questions cannot be answered here, and a connection without data for two minutes is given up.
export GIT_TERMINAL_PROMPT=0 GIT_HTTP_LOW_SPEED_LIMIT=1000 GIT_HTTP_LOW_SPEED_TIME=120
export PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_USER=0

# offline FOLDER [URL]...: use files that the user copied to FOLDER instead of the network: packages from FOLDER/wheels,
# the repository of each URL from FOLDER/NAME.bundle.
offline() {
    brought=$1
    shift
    if [ -d "$brought/wheels" ]; then
        echo "Packages come from $brought/wheels, and from nowhere else."
        export PIP_NO_INDEX=1 PIP_FIND_LINKS="$brought/wheels"
    fi
    case $(echo "$brought"/*.bundle) in "$brought/*.bundle") return 0 ;; esac
    fits=
    for url; do
        url=${url%.git}
        if [ -s "$brought/${url##*/}.bundle" ]; then fits=yes; fi
    done
    if [ -z "$fits" ]; then
        echo "No bundle in $brought has the name of a repository of this recipe: they come from the network."
        return 0
    fi
    for url; do
        url=${url%.git}
        bundle=$brought/${url##*/}.bundle
        # git compares only prefixes: without its own rule, NeMo-Run would count as part of NeMo.
        from=$url.git
        if [ -s "$bundle" ]; then
            echo "$url comes from $bundle."
            from=$bundle
        fi
        instead "$from" "$url.git"
        instead "$from" "$url"
    done
    if [ -z "$(git config --get-regexp '^url\..*\.insteadof$' | grep -F "$brought/")" ]; then
        echo "This git is too old for what was brought to $brought: $(git --version)."
        exit 1
    fi
}

# instead FROM URL: let git use FROM for URL.
instead() {
    number=${GIT_CONFIG_COUNT:-0}
    export "GIT_CONFIG_KEY_$number=url.$1.insteadOf" "GIT_CONFIG_VALUE_$number=$2" "GIT_CONFIG_COUNT=$((number + 1))"
}

# alone: wait for the programs of an earlier attempt, which may outlive the shell that started them. Programs that are
# started from here inherit the lock. On a file system without such locks, this does not wait.
alone() {
    exec 9<>"$(private at-work)"
    command -v flock >/dev/null || return 0
    flock -n 9 2>/dev/null && return
    echo "Waiting until what an earlier attempt started has ended."
    flock -w 600 9 2>/dev/null || :
}

# private NAME: print a private path of the step, where no other user can put a link: in its folder or, if a group may
# write to that, in the home directory.
private() {
    if shared; then
        (umask 077 && mkdir -p "$HOME/.llmb-tui") &&
            echo "$HOME/.llmb-tui/$1-$step-$(printf %s "$install" | cksum | cut -d ' ' -f 1)"
    else
        echo "$dir/$1"
    fi
}

# note FILE: record in FILE that a step is done.
note() {
    fresh_folder "$(dirname "$1")"
    date | put "$1"
}
