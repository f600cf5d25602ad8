# secret_states.sh REGISTRY_KEY HUB_TOKEN: for each secret a line: is our file there, below the home directory, and
# does the operator have one of their own?
own=${ENROOT_CONFIG_PATH:-${XDG_CONFIG_HOME:-$HOME/.config}/enroot}/.credentials
say() {
    if [ -s "$HOME/$1" ]; then printf 'ours '; else printf 'none '; fi
    if [ "$2" ]; then echo own; else echo none; fi
}
echo # what a login shell has printed may have no line end
say "$1" "$(grep -s '^[[:space:]]*machine[[:space:]]*nvcr\.io[[:space:]]' "$own" | head -c 1)"
say "$2" "$(head -c 1 "${HF_TOKEN_PATH:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/token}" 2>/dev/null)"
