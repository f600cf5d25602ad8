# Enroot's version, its settings as it reads them itself (the environment, else its configuration, where a value may
# name variables), and the free KiB where it unpacks. Run by a batch, in a subshell, which it leaves where there is no
# enroot.
enroot version || exit 127
conf=${ENROOT_SYSCONF_PATH:-/etc/enroot}/enroot.conf
for name in ENROOT_TEMP_PATH ENROOT_CACHE_PATH ENROOT_DATA_PATH ENROOT_RUNTIME_PATH ENROOT_ROOTFS_WRITABLE; do
    eval "value=\${$name-}"
    if [ -z "$value" ]; then
        value=$(cat "$conf" "$conf".d/*.conf 2>/dev/null | sed -n "s/^[[:blank:]]*$name[[:blank:]]*//p" | tail -n 1)
        value=$(eval "printf %s \"$value\"" 2>/dev/null)
    fi
    [ -z "$value" ] || printf '%s %s\n' "$name" "$value"
    [ "$name" != ENROOT_TEMP_PATH ] || temp=${value:-${TMPDIR:-/tmp}}
done
printf 'free %s %s\n' "$(limited 5 df -Pk "$temp" | awk 'END { print $(NF - 2) }')" "$temp"
