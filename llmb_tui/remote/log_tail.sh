# The bytes from $5 on. GNU tail looks once a second unless told otherwise; others look often enough and have no -s.
if [ "$how" = gzip ]; then
    tail -c "+$5" <&4 | head -c "$gap" | gzip -1
    exit
fi
exec 3<&0
export LC_ALL=C
every=
if tail --version > /dev/null 2>&1; then every="-s 0.5"; fi
tail $every -c "+$5" -f <&4 &
exec > /dev/null 2>&1 4<&-
cat <&3
kill "$!"
