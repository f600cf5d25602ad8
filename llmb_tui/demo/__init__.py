"""And without a cluster? An SSH login node with a small Slurm, inside the process. Simulated, and says so."""
