"""What the jobs of Run:ai are called."""

from __future__ import annotations

from llmb_tui.cluster.scheduler_words import JobWords

RUNAI_WORDS = JobWords(
    "Run:ai", "workload", "The workload is deleted, which ends it. What was copied of its log, and its steps, are kept."
)
