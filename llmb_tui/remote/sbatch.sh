# Slurm prefers these variables, which a person's profile may set, to what a script or a command line asks for.
no_sbatch_variables() {
    for variable in $(env | sed -n 's/^\(SBATCH_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
}

