#!/bin/sh
# Gives a batch script to Slurm, at most once however often this is started. Run detached:
#
#     sh submit.sh FOLDER SCRIPT
#
# FOLDER then holds claim/owner (who did it, and when), refusal (what sbatch said), submitted (the answer
# of sbatch, if it accepted the job) and exit (its exit code). Nothing here is ever done twice: whoever
# cannot create claim/owner leaves, and nobody removes it.
cd "$1" || exit 1
script=$2

mkdir claim 2>/dev/null || exit 0
set -C
printf '%s@%s %s %s\n' "$(id -un)" "$(uname -n)" "$$" "$(date +%s)" 2>/dev/null >claim/owner || exit 0
set +C

# Slurm prefers these to the lines of the script, and the script is what was agreed to.
for name in $(env | sed -n 's/^\(SBATCH_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

sbatch --parsable "$script" </dev/null >answer 2>refusal
code=$?
if [ "$code" -eq 0 ]; then
    mv answer submitted
fi
echo "$code" >exit.new
mv exit.new exit
