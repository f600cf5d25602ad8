# The bytes from $5 on: compressed and once, or as they arrive, in frames, up to the size of the file at each look. A frame
# is a line `+LENGTH`, that many bytes, and a line `-`; it begins $8 bytes before the new part, so that the reader can see
# that this is still the same log, and has at most $9 new bytes. `!` is the last line: the file is another one, is gone, was
# truncated, or may not be read. If there is Perl, its program ${11} does the same and starts no process at each look; it
# ends after ${12} seconds without input.
if perl -e 1 2> /dev/null; then
    exec perl -e "${11}" "$1" "$inode" "$(($5 - 1))" "$how" "$8" "$9" "${12}"
fi
if [ "$how" != plain ]; then
    tail -c "+$5" <&4 | "$how" -q -c -1
    exit
fi
exec 3<&0
export LC_ALL=C
at=$(($5 - 1))
is_there() {
    read -r now mode links user group size rest << END
$(ls -Lind "$1" 2> /dev/null)
END
    [ "$now" = "$inode" ] && [ "$size" -ge "$at" ] && [ -r "$1" ]
}
follow() {
    while is_there "$1"; do
        if [ "$size" -eq "$at" ]; then
            sleep 0.5 2> /dev/null || sleep 1
            continue
        fi
        from=$((at > $8 ? at - $8 : 0)) to=$((size - at > $9 ? at + $9 : size))
        echo "+$((to - from))"
        tail -c "+$((from + 1))" "$1" | head -c "$((to - from))"
        echo -
        at=$to
    done
    echo '!'
}
follow "$@" 4<&- &
exec > /dev/null 2>&1 4<&-
cat <&3
kill "$!"
