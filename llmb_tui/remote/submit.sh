#!/bin/sh
# Gives a batch script to Slurm, at most once however often this is started. Run detached:
#
#     sh submit.sh FOLDER SCRIPT
#
# FOLDER then holds claim (a symbolic link to nowhere that says who did it: user@host, process group, Unix time),
# answer and refusal (what sbatch said) and exit (its exit code, Unix time). Nothing here is ever done twice: whoever
# cannot create claim leaves, and nobody removes it.
cd "$1" || exit 1

# A link is there with its words or not at all; a file could be left empty, and then nobody would know whose it is.
group=$(ps -o pgid= -p $$)
ln -s "$(id -un)@$(uname -n) ${group##* } $(date +%s)" claim 2>/dev/null || exit 0

# Slurm prefers these to the lines of the script, and the script is what was agreed to.
for name in $(env | sed -n 's/^\(SBATCH_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

sbatch --parsable "$2" </dev/null >answer 2>refusal
echo "$? $(date +%s)" >exit.new
mv exit.new exit
