# llmb_runs TOKEN BYTES MOST JOB DIRECTORY...: list the jobs of llmb-run in these installations, the newest first; all jobs
# if JOB is empty. llmb-run writes a file next to the logs of each job. Prints for each
#
#     \036TOKEN run FILE        then at most BYTES + 1 bytes of the file
#     \036TOKEN written FILE    then its time in Unix seconds: just after the submission
#     \036TOKEN logs FILE       then the names of the job's training logs, one per line
#     \036TOKEN job FILE        then the job's name, from its batch script
token=$1 bytes=$2 most=$3 name=llmb-config_${4:+"$4[!0-9]"}'*'
shift 4
frame() { printf '\036%s %s %s\n' "$token" "$1" "$2"; }

# files FOLDER DEPTH: time and path of each such file at this depth. A cluster may restart its job ids, so the highest
# number is not always the newest.
files() {
    find -H "$1" -mindepth "$2" -maxdepth "$2" -name "$name" -name '*.yaml' -exec stat -c '%Y %n' {} + 2>/dev/null
}

for root; do
    for folder in "$root"/workloads/*; do
        files "$folder" 1
        # NeMo-Run's layout is EXPERIMENT/EXPERIMENT_TIME/TASK/.
        files "$folder/experiments" 4
    done
done | sort -rn | head -n "$most" |
    while read -r time file; do
        folder=${file%/*} id=${file##*/llmb-config_}
        id=${id%%[!0-9]*}
        frame run "$file"
        head -c "$((bytes + 1))" "$file" 2>/dev/null
        frame written "$file"
        echo "$time"
        frame logs "$file"
        for log in "$folder"/log-*_"$id"_*.out; do [ ! -e "$log" ] || printf '%s\n' "${log##*/}"; done | head -n 64
        frame job "$file"
        sed -n 's/^#SBATCH --job-name=//p' "${folder}_sbatch.sh" 2>/dev/null | head -n 1
    done
exit 0
