"""The part of Slurm that llmb-tui uses: its commands, on a state directory, with real processes as jobs.

Messages, refusals and exit codes are those of Slurm 22.05; anything that llmb-tui never sends is refused
(`options.not_offered`). Every command is a separate process (`command.py` starts it by path, without site-packages), so
this package imports only the standard library.
"""
