"""`pending_reason`: why a job waits, in plain words.

Slurm's table of reasons (src/common/job_state_reason.c) has some 220; those of associations and QOS are made of
the same few words. Where Slurm knows more it prints a sentence instead.
"""

from __future__ import annotations

import re

from llmb_tui.text import clean_line

_WORDS = {
    "None": "Slurm has not looked at it yet.",
    "Priority": "Other jobs are before it in the queue.",
    "Resources": "It is next, and waits until enough nodes are free.",
    "SchedDefer": "Slurm starts no job at once here; the scheduler looks at it soon.",
    "Dependency": "It waits for another job.",
    "DependencyNeverSatisfied": "The job that it waits for has failed; it will never start.",
    "BeginTime": "Its start time has not come, for example after a requeue.",
    "JobHeldUser": "It is held by its owner: `scontrol release` lets it go.",
    "JobHeldAdmin": "It is held by an administrator.",
    "JobHoldMaxRequeue": "It was requeued too often and is held: find out why it fails, then `scontrol release` it.",
    "PartitionDown": "The partition is down.",
    "PartitionInactive": "The partition takes no jobs at the moment.",
    "PartitionNodeLimit": "It asks for more nodes, or fewer, than the partition allows.",
    "PartitionTimeLimit": "It asks for more time than the partition allows.",
    "PartitionConfig": "It asks for something that the partition does not allow.",
    "AccountNotAllowed": "The partition does not take its account.",
    "AccountingPolicy": "A limit of its account or QOS holds it back.",
    "ReqNodeNotAvail": "A node that it needs is down, drained or reserved, often for maintenance.",
    "NodeDown": "A node that it needs is down.",
    "FrontEndDown": "The cluster's front end is down.",
    "Reservation": "It waits for its reservation.",
    "ReservationDeleted": "Its reservation was deleted: submit it again without, or with another one.",
    "ReservationInvalid": "Its reservation is not valid: submit it again without, or with another one.",
    "BadConstraints": "No node can ever satisfy it.",
    "Constraints": "No node satisfies its constraints now.",
    "Licenses": "It waits for a licence.",
    "InvalidAccount": "Its account is not valid.",
    "InvalidQOS": "Its QOS is not valid.",
    "QOSNotAllowed": "Its QOS may not be used with this account or partition.",
    "QOSUsageThreshold": "The QOS wants more of the account's share than is left.",
    "JobArrayTaskLimit": "Enough tasks of its array are running.",
    "Cleaning": "It was requeued and its nodes are still being cleaned up.",
    "Prolog": "Its nodes are being prepared.",
    "DeadLine": "It cannot end before its deadline any more.",
    "TimeLimit": "It ran into its time limit.",
    "InactiveLimit": "It was idle for too long.",
    "FedJobLock": "Another cluster of the federation decides on it.",
    "MpiPortsBusy": "It waits for network ports.",
    "NvidiaImexChannels": "It waits for a channel of NVIDIA IMEX, which connects GPUs across nodes.",
    "MaxPoweredUpNodes": "As many nodes as are allowed are powered up.",
    "PowerNotAvail": "There is not enough electrical power for it now.",
    "PowerReserved": "The electrical power that it needs is reserved.",
    "JobLaunchFailure": "Its start failed.",
    "SystemFailure": "Slurm itself failed to start it.",
}
_PATTERNS = (
    (r".*Nodes required for job are DOWN.*", "Nodes that it needs are down, drained or reserved."),
    (r"ReqNodeNotAvail, ?May be reserved.*", "A node that it needs is reserved for another job."),
    (r"ReqNodeNotAvail, ?Reserved for maintenance", "A node that it needs is reserved for maintenance."),
    (
        r"(?:launch failed|launch failure limit|user env retrieval failed).*",
        "Its start failed, and it is held: see what is wrong with the nodes, then `scontrol release` lets it go.",
    ),
    (r"job requeued in (?:held|special exit) state", "It was requeued and is held: `scontrol release` lets it go."),
    (
        r"Reservation .* (?:was deleted|is invalid)",
        "Its reservation is gone: submit it again without, or with another.",
    ),
    (r"(?i)burst ?buffer.*", "It waits for the burst buffer, which moves its files."),
    (r"Block(?:Free|Max).*", "The machine's blocks are not ready for it."),
    (r"Job's QOS not (?:known|permitted).*", "The partition does not take its QOS."),
    (r"uid \d+ not in group permitted.*", "The partition is for members of other groups."),
    (
        r"(?:Assoc|QOS|Job is at or exceeds ).*(?i:wall).*|(?:Association|QOS)TimeLimit",
        "It asks for more time than the account or its QOS allows, or its jobs together do.",
    ),
    (r"(?:Assoc|QOS|Max)\w*(?<!Per)Jobs?(?:Limit|Per)\w*", "As many jobs as the account or its QOS allows are there."),
    (r"QOSMin.*", "It asks for less than its QOS demands."),
    (r"Job is at or exceeds .* minutes .*", "The account or its QOS has used up its time."),
    (r"(?:Assoc|QOS|Max)[A-Z].*|Association.*|Job is at or exceeds .*", "The account or its QOS has reached a limit."),
)
# Whose limit, which resource, of what.
_LIMIT = re.compile(
    r"(?P<whose>Assoc|QOS|Max)(?:Grp|Max)?(?P<what>Billing|Cpu|CPU|GRES|License|Mem|Memory|Node)"
    r"(?P<time>(?:Run)?(?:Minutes|Mins))?(?:Per(?P<each>Job|Node|User|Account))?(?:Limit)?"
)
_WHOSE = {"Assoc": "its account", "QOS": "its QOS", "Max": "its account"}
_WHAT = {
    "Billing": "billing units",
    "Cpu": "CPUs",
    "CPU": "CPUs",
    "GRES": "GPUs",
    "License": "licences",
    "Mem": "memory",
    "Memory": "memory",
    "Node": "nodes",
}


def pending_reason(reason: str) -> str:
    """Slurm's reason for waiting in plain words; Slurm's own, clean, where there are none."""
    word = reason.strip()
    word = word[1:-1] if word.startswith("(") and word.endswith(")") else word
    words = _WORDS.get(word) or _of_limit(word)
    if words is None:
        words = next((words for pattern, words in _PATTERNS if re.fullmatch(pattern, word)), None)
    return words or _WORDS.get(re.split(r"[,:]", word)[0]) or clean_line(word)


def _of_limit(word: str) -> str | None:
    """A limit on one resource in words."""
    match = _LIMIT.fullmatch(word)
    if match is None:
        return None
    whose, what = _WHOSE[match["whose"]], _WHAT[match["what"]]
    if match["time"]:
        what = f"time on {what}"
    if match["each"] in ("Job", "Node"):
        return f"It asks for more {what} than {whose} allows for one {match['each'].lower()}."
    if match["each"] == "User":
        return f"Its owner's jobs use all {what} that {whose} allows one user."
    has = "has used up all its {}" if match["time"] else "has all its {} in use"
    return f"{whose.replace('its', 'Its')} {has.format(what)}."
