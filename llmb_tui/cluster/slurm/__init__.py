"""Clusters with Slurm, which are reached through the commands on a login node."""
