# secret_states.sh REGISTRY_KEY HUB_TOKEN: one line per secret: whether our file exists below the home directory, and
# whether the operator has another one. Behind enroot_environment.sh.
! command -v enroot >/dev/null 2>&1 || enroot_environment 2>/dev/null
own=${ENROOT_CONFIG_PATH:-${XDG_CONFIG_HOME:-$HOME/.config}/enroot}/.credentials
say() {
    if [ -s "$HOME/$1" ]; then printf 'ours '; else printf 'none '; fi
    if [ "$2" ]; then echo own; else echo none; fi
}
echo # ends a line that the login shell may have begun
say "$1" "$(grep -s '^[[:space:]]*machine[[:space:]]*nvcr\.io[[:space:]]' "$own" | head -c 1)"
say "$2" "$(head -c 1 "${HF_TOKEN_PATH:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/token}" 2>/dev/null)"
