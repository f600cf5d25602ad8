"""Slurm through its commands: what is asked, and what the answers mean."""
