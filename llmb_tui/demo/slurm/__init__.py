"""A small Slurm: the commands that an operator's tools use, on a state directory, with real processes as jobs.

Output formats, refusals and exit codes are those of Slurm 22.05. Everything here runs as a command of its own
(`command.py` starts it by path, without site-packages), so it imports the standard library only.
"""
