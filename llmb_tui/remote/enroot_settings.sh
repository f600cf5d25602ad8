# Enroot's version, its settings as it reads them (from the environment, else from its configuration, whose values may use
# variables), the free KiB where it unpacks, and the site's container settings: `site DIRECTORY`, `hook` if NVIDIA's
# PyTorch hook is there, and `adapters NAME` if `environ.d` or this shell sets them. A batch runs this in a subshell, which
# exits if there is no enroot.
enroot version || exit 127
site=${ENROOT_SYSCONF_PATH:-/etc/enroot}
own=${ENROOT_CONFIG_PATH:-${XDG_CONFIG_HOME:-$HOME/.config}/enroot}
conf=$site/enroot.conf
for name in ENROOT_TEMP_PATH ENROOT_CACHE_PATH ENROOT_DATA_PATH ENROOT_RUNTIME_PATH ENROOT_ROOTFS_WRITABLE \
    ENROOT_REMAP_ROOT; do
    eval "value=\${$name-}"
    if [ -z "$value" ]; then
        value=$(cat "$conf" "$conf".d/*.conf 2>/dev/null | sed -n "s/^[[:blank:]]*${name}[[:blank:]=]*//p" | tail -n 1)
        value=$(eval "printf %s \"$value\"" 2>/dev/null)
    fi
    [ -z "$value" ] || printf '%s %s\n' "$name" "$value"
    [ "$name" != ENROOT_TEMP_PATH ] || temp=${value:-${TMPDIR:-/tmp}}
done
printf 'free %s %s\n' "$(limited 5 df -Pk "$temp" | awk 'END { print $(NF - 2) }')" "$temp"
[ ! -r "$conf" ] || printf 'site %s\n' "$site"
for folder in "$site" "$own"; do
    [ ! -e "$folder/hooks.d/50-slurm-pytorch.sh" ] || echo hook
done
for name in NCCL_IB_HCA MELLANOX_VISIBLE_DEVICES; do
    eval "value=\${$name-}"
    [ -z "$value" ] && ! grep -qs "^[[:blank:]]*${name}[[:blank:]]*=[[:blank:]\"']*[^[:blank:]\"']" \
        "$site"/environ.d/*.env "$own"/environ.d/*.env || echo "adapters $name"
done
