"""A Slurm as llmb-tui sees one: the commands that it sends, on a state directory, with real processes as jobs.

Texts, refusals and exit codes are those of Slurm 22.05; what llmb-tui never sends is refused (`options.not_offered`).
Everything here runs as a command of its own (`command.py` starts it by path, without site-packages), so it imports
the standard library only.
"""
