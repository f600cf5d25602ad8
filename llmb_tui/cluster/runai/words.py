"""Words for the jobs of Run:ai."""

from __future__ import annotations

from llmb_tui.cluster.scheduler_words import JobWords

RUNAI_WORDS = JobWords(
    "Run:ai", "workload", "The workload is deleted, which ends it. The copy of its log and its steps are kept."
)
