# Slurm prefers these variables, which the user's profile may set, to the options of a script or command line.
no_sbatch_variables() {
    for variable in $(env | sed -n 's/^\(SBATCH_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
}

