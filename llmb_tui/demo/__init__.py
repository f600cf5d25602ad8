"""Simulated clusters inside the process: an SSH login node with a small Slurm, and a Run:ai. All are labelled so."""
