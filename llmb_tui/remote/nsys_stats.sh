# nsys_stats FILE: kernel times of an Nsight Systems profile, as CSV among nsys's own messages; the answer has a line
# `llmb-nsys missing` if there is no nsys. Older versions have the same report under another name. nsys unpacks a profile
# into a database of several times its size, which is removed with its folder.
echo # ends a line that the login shell may have begun
command -v nsys > /dev/null 2>&1 || { echo "llmb-nsys missing"; exit 0; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
for report in cuda_gpu_kern_sum gpukernsum; do
    nice -n 10 nsys stats --report "$report" --format csv --output - --sqlite "$folder/profile.sqlite" "$1" \
        < /dev/null 2> "$folder/errors" > "$folder/$report"
    if grep -q '^"\{0,1\}Time' "$folder/$report"; then
        head -c 4000000 "$folder/$report"
        exit 0
    fi
done
head -c 2000 "$folder/cuda_gpu_kern_sum"
head -c 2000 "$folder/errors" >&2
exit 1
