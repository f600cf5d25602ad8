# llmb_runs TOKEN BYTES MOST JOB DIRECTORY...: what llmb-run started from these installations, the newest first; of all
# jobs where JOB is empty. It writes a file beside the logs of each job. Prints for each
#
#     \036TOKEN run FILE        then no more than BYTES + 1 bytes of the file
#     \036TOKEN written FILE    then when it was written, in Unix seconds: just after the job was submitted
#     \036TOKEN logs FILE       then the names of the job's training logs, one a line
#     \036TOKEN job FILE        then the job's name, from its batch script
token=$1 bytes=$2 most=$3 name=llmb-config_${4:+"$4[!0-9]"}'*'
shift 4
frame() { printf '\036%s %s %s\n' "$token" "$1" "$2"; }

# files FOLDER DEPTH: when each of those that lie so deep was written, and its path. A cluster counts its jobs anew at
# times, so that the highest number is not the newest.
files() {
    find -H "$1" -mindepth "$2" -maxdepth "$2" -name "$name" -name '*.yaml' -exec stat -c '%Y %n' {} + 2>/dev/null
}

for root; do
    for folder in "$root"/workloads/*; do
        files "$folder" 1
        # EXPERIMENT/EXPERIMENT_TIME/TASK/ is NeMo-Run's layout.
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
