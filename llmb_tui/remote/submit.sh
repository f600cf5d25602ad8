# Gives a batch script to Slurm, at most once however often this is started. Run detached, behind group.sh and
# claim.sh:
#
#     sh submit.sh FOLDER SCRIPT
#
# FOLDER then holds claim, answer and refusal (what sbatch said) and exit (its exit code).
cd "$1" || exit 1
claimed || exit 0

# Slurm prefers these to the lines of the script, and the script is what was agreed to.
for name in $(env | sed -n 's/^\(SBATCH_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

sbatch --parsable "$2" </dev/null >answer 2>refusal
ended "$?"
