# Gives a batch script to Slurm, at most once however often this is started. Run detached, behind inside.sh, group.sh,
# claim.sh and sbatch.sh:
#
#     submit.sh INSTALL FOLDER SCRIPT
#
# SCRIPT lies in the folder that holds FOLDER. FOLDER then holds claim, answer and refusal (what sbatch said) and exit
# (its exit code).
top "$1" && enter_own "${2#"$1"/}" || exit 1
claimed || exit 0

no_sbatch_variables
sbatch --parsable "../${3##*/}" </dev/null >answer 2>refusal
ended "$?"
