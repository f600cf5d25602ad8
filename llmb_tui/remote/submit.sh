# Gives a batch script to Slurm, at most once however often this is started. Run detached, behind group.sh,
# claim.sh and sbatch.sh:
#
#     sh submit.sh FOLDER SCRIPT
#
# FOLDER then holds claim, answer and refusal (what sbatch said) and exit (its exit code).
cd "$1" || exit 1
claimed || exit 0

no_sbatch_variables
sbatch --parsable "$2" </dev/null >answer 2>refusal
ended "$?"
