# probe NAME ADDRESS: print `NAME STATUS` or `NAME WORDS`, with the available program: curl and wget use the site's proxy
# variables. Run by a batch.
probe() {
    if command -v curl >/dev/null 2>&1; then
        words=$(limited 12 curl -sS -o /dev/null -w 'HTTP %{http_code}\n' --connect-timeout 6 --max-time 10 "$2" 2>&1)
    elif command -v wget >/dev/null 2>&1; then
        words=$(limited 12 wget -q -S -O /dev/null --timeout=6 --tries=1 "$2" 2>&1 | sed -e 's,^ *HTTP/[0-9.]*,HTTP,')
    elif command -v python3 >/dev/null 2>&1; then
        words=$(limited 12 python3 -c '
import sys, urllib.error, urllib.request
try:
    print("HTTP", urllib.request.urlopen(sys.argv[1], timeout=6).status)
except urllib.error.HTTPError as error:
    print("HTTP", error.code)
except Exception as error:
    print(error)' "$2" 2>&1)
    else
        words="no curl, no wget, no python3"
    fi
    printf '%s %s\n' "$1" "$(printf '%s' "$words" | tr '\n' ' ')"
}

# proxy_for ADDRESS: print the proxy that this shell's variables name for it.
proxy_for() { case $1 in https:*) echo "${https_proxy:-${all_proxy-}}" ;; *) echo "${http_proxy:-${all_proxy-}}" ;; esac; }

# probe_as_enroot NAME ADDRESS: the same for a server that Enroot uses, with Enroot's own proxy, behind
# enroot_environment.sh and a snippet `enroot` that starts it. First prints `NAME_proxy PROXY`, without a password, if only
# Enroot uses it.
probe_as_enroot() (
    before=$(proxy_for "$2")
    [ "$rc_enroot" != 0 ] || enroot_environment 2>/dev/null
    proxy=$(proxy_for "$2")
    [ "$proxy" = "$before" ] || printf '%s_proxy %s\n' "$1" "$(printf %s "$proxy" | sed 's,//[^/]*@,//,')"
    probe "$@"
)

# probe_git NAME ADDRESS: the same for a repository, with git, which never asks for a password.
probe_git() {
    if command -v git >/dev/null 2>&1; then
        words=$(limited 12 env GIT_TERMINAL_PROMPT=0 git ls-remote "$2" HEAD 2>&1 | tail -c 2000)
    else
        words="no git"
    fi
    printf '%s %s\n' "$1" "$(printf '%s' "$words" | tr '\n' ' ')"
}
