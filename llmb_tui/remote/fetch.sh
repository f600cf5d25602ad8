# Send a request to a web server from here, with curl:
#
#     fetch.sh URL NETRC BEARER [as_enroot]         lines of a curl configuration on stdin
#
# With `as_enroot`, the request uses the proxy and the certificates of Enroot (behind enroot_environment.sh).
# NETRC and BEARER name files below the home directory, or are empty: if the files exist, curl gets the logins in the first
# and the text of the second as a token. Neither ever becomes an argument, and curl's own files are not read.
# Prints a line `llmb-fetch`, which output of a login shell may precede, then header and body of the answer, and a last
# line with its status.
if [ "${4-}" ] && command -v enroot >/dev/null 2>&1; then enroot_environment 2>/dev/null; fi
printf '\nllmb-fetch\n'
{
    cat
    if [ "$2" ] && [ -s "$HOME/$2" ]; then printf '\nnetrc-file = "%s"\nnetrc-optional\n' "$HOME/$2"; fi
    if [ "$3" ] && [ -s "$HOME/$3" ]; then printf '\nheader = "Authorization: Bearer %s"\n' "$(cat "$HOME/$3")"; fi
} | curl -q -sSi --connect-timeout 8 --max-time 15 --max-filesize 4000000 -w '\n%{http_code}\n' -K - -- "$1"
