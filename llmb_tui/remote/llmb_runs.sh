# llmb_runs TOKEN BYTES MOST DIRECTORY...: what llmb-run started from these installations, the highest job id first.
# It writes a file beside the logs of each job. Prints for each
#
#     \036TOKEN run FILE        then no more than BYTES + 1 bytes of the file
#     \036TOKEN written FILE    then when it was written, in Unix seconds: just after the job was submitted
#     \036TOKEN logs FILE       then the names of the job's training logs, one a line
#     \036TOKEN job FILE        then the job's name, from its batch script
token=$1 bytes=$2 most=$3
shift 3
frame() { printf '\036%s %s %s\n' "$token" "$1" "$2"; }

for root; do
    for folder in "$root"/workloads/*/experiments; do
        # EXPERIMENT/EXPERIMENT_TIME/TASK/ is NeMo-Run's layout.
        find "$folder" -mindepth 4 -maxdepth 4 -name 'llmb-config_*.yaml' 2>/dev/null
    done
    for file in "$root"/workloads/*/llmb-config_*.yaml; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
done | awk '{ id = $0; sub(/.*llmb-config_/, "", id); sub(/[^0-9].*/, "", id); print id, $0 }' | sort -rn | head -n "$most" |
    while read -r id file; do
        folder=${file%/*}
        frame run "$file"
        head -c "$((bytes + 1))" "$file" 2>/dev/null
        frame written "$file"
        date -r "$file" +%s 2>/dev/null
        frame logs "$file"
        for log in "$folder"/log-*_"$id"_*.out; do [ ! -e "$log" ] || printf '%s\n' "${log##*/}"; done | head -n 64
        frame job "$file"
        sed -n 's/^#SBATCH --job-name=//p' "${folder}_sbatch.sh" 2>/dev/null | head -n 1
    done
exit 0
