# Enroot's version, its settings, the free KiB where it unpacks (`free KIB DIRECTORY`, or `no_temp DIRECTORY` if it cannot
# write there), and the site's container settings: `site DIRECTORY`, `hook` if NVIDIA's PyTorch hook is there, and
# `adapters NAME` if `environ.d` or Enroot's environment sets them; `unread` if the settings cannot be read. A batch runs
# this in a subshell, behind enroot_environment.sh. It exits with 127 if there is no Enroot, and with another code and
# Enroot's message if Enroot does not start.
command -v enroot >/dev/null || exit 127
words=$(limited 5 enroot version 2>&1)
code=$?
if [ "$code" != 0 ]; then
    printf '%s\n' "$words"
    exit "$code"
fi
printf '%s\n' "$words" | tail -n 1 # a line of its configuration may cause messages
if ! enroot_environment 2>/dev/null; then
    echo unread
    exit
fi
for name in ENROOT_TEMP_PATH ENROOT_CACHE_PATH ENROOT_DATA_PATH ENROOT_RUNTIME_PATH ENROOT_CONFIG_PATH \
    ENROOT_ROOTFS_WRITABLE ENROOT_REMAP_ROOT; do
    eval "value=\${$name-}"
    [ -z "$value" ] || printf '%s %s\n' "$name" "$value"
done
if limited 5 test -d "$ENROOT_TEMP_PATH" -a -w "$ENROOT_TEMP_PATH"; then
    printf 'free %s %s\n' "$(limited 5 df -Pk "$ENROOT_TEMP_PATH" | awk 'END { print $(NF - 2) }')" "$ENROOT_TEMP_PATH"
else
    printf 'no_temp %s\n' "$ENROOT_TEMP_PATH"
fi
[ ! -r "$ENROOT_SYSCONF_PATH/enroot.conf" ] || printf 'site %s\n' "$ENROOT_SYSCONF_PATH"
for folder in "$ENROOT_SYSCONF_PATH" "$ENROOT_CONFIG_PATH"; do
    [ ! -x "$folder/hooks.d/50-slurm-pytorch.sh" ] || echo hook
done
for name in NCCL_IB_HCA MELLANOX_VISIBLE_DEVICES; do
    eval "value=\${$name-}"
    [ -z "$value" ] && ! grep -qs "^[[:blank:]]*${name}=[\"']*[^[:blank:]\"']" \
        "$ENROOT_SYSCONF_PATH"/environ.d/*.env "$ENROOT_CONFIG_PATH"/environ.d/*.env || echo "adapters $name"
done
