# enroot_environment: give this shell the environment that the installed Enroot makes for itself: proxy, certificates and
# paths. The first lines of NVIDIA's program read its configuration; they run here, whatever its version, but make no
# directory. In them a variable of the environment precedes the configuration, and an earlier line a later one. False if
# the configuration is invalid, or Enroot is another program.
enroot_environment() {
    variables=$(bash -c '
        lines=$(sed -n "/^# -* BEGIN CONFIG -*$/,/^# -* END CONFIG -*$/p" "$1") && [ "$lines" ] || exit
        compgen -e ENROOT_ | sed "s/^/unset /"
        set -euo pipefail
        mkdir() { :; }
        { eval "$lines"; } >&2
        sh -c "export -p"
    ' enroot "$(command -v enroot)" </dev/null) && eval "$variables"
}
