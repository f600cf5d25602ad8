"""Words for Slurm's jobs."""

from __future__ import annotations

from llmb_tui.cluster.scheduler_words import JobWords

SLURM_WORDS = JobWords("Slurm", "job", "Its log and its steps so far are kept.")
