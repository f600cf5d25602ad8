"""`RUNAI`: the entry of Run:ai in the registry of kinds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.runai.kept_accounting import accounted_workloads
from llmb_tui.cluster.runai.profile import RunaiProfile, from_environment
from llmb_tui.cluster.runai.profile_check import check_runai_profile
from llmb_tui.cluster.runai.profile_fields import RUNAI_EMPTY, RUNAI_FIELDS, runai_profile_of, runai_texts_of
from llmb_tui.cluster.runai.words import RUNAI_WORDS

if TYPE_CHECKING:
    from llmb_tui.cluster.cluster import Cluster


def _open(profile: RunaiProfile) -> Cluster:
    from llmb_tui.cluster.runai.cluster import RunaiCluster  # noqa: PLC0415 - reading a profile needs no connection

    return RunaiCluster(profile)


def _usual(variables: Mapping[str, str]) -> dict[str, str]:
    return runai_texts_of(from_environment(variables))


def _secrets(profile: RunaiProfile) -> dict[str, str]:
    from llmb_tui.cluster.runai.secret import AppSecret  # noqa: PLC0415 - it opens the keyring

    return {f"the secret of {profile.app_id}": AppSecret(profile)() or ""}


RUNAI = ClusterKind(
    RunaiProfile,
    RUNAI_WORDS,
    RUNAI_FIELDS,
    "--base-url https://HOST/api/v1 --app-id ID --project P",
    check_runai_profile,
    partial(runai_profile_of, RUNAI_EMPTY),
    _open,
    accounted_workloads,
    usual=_usual,
    secrets=_secrets,
)
