# Pass a batch script to Slurm, at most once however often this is started. Runs detached, behind inside.sh, group.sh,
# claim.sh and sbatch.sh:
#
#     submit.sh INSTALL FOLDER SCRIPT
#
# SCRIPT is in the parent of FOLDER. FOLDER then contains claim, answer and refusal (output of sbatch) and exit (its exit
# code).
top "$1" && enter_own "${2#"$1"/}" || exit 1
claimed || exit 0

no_sbatch_variables
sbatch --parsable "../${3##*/}" </dev/null >answer 2>refusal
ended "$?"
