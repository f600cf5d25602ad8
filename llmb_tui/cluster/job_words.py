"""Reasons of a job's state in plain words: of its wait, its cancellation or its end."""

from __future__ import annotations

import re

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean_line

_WORD = re.compile(r"\w{3,40}(?![\w ])", re.ASCII)


def words_of_job(job: Job) -> str:
    """Reason of a wait, user who cancelled, or exit code of a failed job; may be empty."""
    ended = f"exit {job.exit_code}" if job.finished and job.exit_code not in (None, "0:0") else ""
    reason = wait_reason(job) if job.waiting else clean_line(server_words(job.reason))
    return " · ".join(filter(None, (ended, reason)))


def wait_reason(job: Job) -> str:
    """Why a job waits, in plain words and with the scheduler's own word; empty for other jobs, and without a reason."""
    if not job.waiting or not job.reason:
        return ""
    words, word = pending_reason(job.reason), wait_word(job)
    return words if words.startswith(word) else f"{words} ({word})"


def wait_word(job: Job) -> str:
    """The scheduler's word for why a job waits, such as `QOSMinNode`; empty if it has a sentence instead."""
    match = _WORD.match(job.reason.strip("() \n")) if job.waiting else None
    return match[0] if match else ""


def pending_reason(reason: str) -> str:
    """Slurm's reason for waiting in plain words if a rule has them; otherwise Slurm's own text, clean."""
    word = reason.strip()
    word = word[1:-1] if word.startswith("(") and word.endswith(")") else word
    rule_set = rules("pending")
    match = rule_set.match(word) or rule_set.match(re.split(r"[,:]", word)[0])
    return match.diagnosis().sentences if match else clean_line(server_words(word))
