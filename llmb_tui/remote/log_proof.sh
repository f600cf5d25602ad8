# What the file $1 is, on one line of its own: a login shell may print before it, also without a line end. The inode, the
# size, the checksum of its first $2 bytes and $4 bytes from byte $3 on (bytes are counted from 1), and how the bytes from
# $5 on will come: compressed if they are more than $6, by the last of the programs $7 that is there. A file that is not
# there is missing only where its folder is there, or the one of all installs, ${10}: else the file system is away, and ls
# says why.
if [ ! -e "$1" ]; then
    [ -d "${1%/*}" ] || [ -d "${10}" ] || { ls -Ld "${10}" > /dev/null; exit 1; }
    printf '\nllmb-log missing\n'
    exit
fi
exec 4< "$1" || exit
size=$(wc -c < "$1") || exit
gap=$((size - $5 + 1)) how=plain
if [ "$gap" -gt "$6" ]; then
    for packer in $7; do if command -v "$packer" > /dev/null; then how=$packer; fi; done
fi
sample() { head -c "$2" "$1" && tail -c "+$3" "$1" | head -c "$4"; }
read -r inode name << END
$(ls -Lid "$1")
END
[ -n "$inode" ] && printf '\nllmb-log %s\n' "$inode $((size)) $(sample "$@" | cksum) $how" || exit
