# Print the state of the file $1, on its own line, because a login shell may print before it, even without a line end: the
# inode, the size, the checksum of its first $2 bytes and of $4 bytes from byte $3 on (counted from 1), and how the bytes
# from $5 on will be sent: compressed if they are more than $6, by the last available program of $7. A missing file counts
# as missing only if its folder, or the folder of all installs, ${10}, exists: otherwise the file system is away, and ls
# prints the reason.
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
