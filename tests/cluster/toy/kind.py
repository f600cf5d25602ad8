"""Registry entries of the toy scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.profile_check import NAME_RULES, InvalidFieldError, check_env, check_texts
from llmb_tui.cluster.profile_fields import ProfileField, needed, values_from_texts
from llmb_tui.cluster.scheduler_words import JobWords
from llmb_tui.plan.plan import Plan
from llmb_tui.preflight.check_group import ok
from llmb_tui.preflight.kinds import PreflightKind
from llmb_tui.preflight.report import Check, Preflight
from tests.cluster.toy.cluster import ToyCluster
from tests.cluster.toy.profile import ToyProfile

FIELDS = (
    ProfileField("name", "name", needed=True),
    ProfileField("queue", "queue", "a directory", needed=True),
    ProfileField("env", "environment", "NAME=value"),
    ProfileField("read_only", "read-only"),
)


def check(profile: ToyProfile) -> None:
    check_texts(profile, NAME_RULES, {})
    if not profile.queue.startswith("/"):
        raise InvalidFieldError("queue", profile.queue, "Give an absolute path.")
    check_env(profile.env)


def profile_of(texts: dict[str, str]) -> ToyProfile:
    needed(FIELDS, texts)
    profile = ToyProfile(**values_from_texts(FIELDS, texts, ToyProfile("", "")))
    check(profile)
    return profile


def accounted(text: str) -> list[Job]:
    return [Job(job_id, "", state) for job_id, state in map(str.split, text.splitlines())]


TOY = ClusterKind(
    ToyProfile,
    JobWords("Toy", "task", "Its log is kept."),
    FIELDS,
    "--queue DIRECTORY",
    check,
    profile_of,
    ToyCluster,
    accounted,
)


@dataclass(frozen=True)
class ToyNeeds:
    """A queue, and nothing else."""

    profile: ToyProfile
    plan: Plan | None = None


def queue(cluster: Cluster, report: Preflight) -> Iterator[Check]:  # noqa: ARG001 - a `CheckGroup`'s
    cluster.ping()
    files = [*Path(cluster.profile.directory).glob("*.job")]
    yield ok("queue", "Queue", f"{len(files)} tasks", "any")


PREFLIGHT: PreflightKind[ToyProfile, ToyNeeds] = PreflightKind(lambda profile, _: ToyNeeds(profile), lambda _: (queue,))
