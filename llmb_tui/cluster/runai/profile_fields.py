"""Fields of a Run:ai profile that the user enters in a form or as flags. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from llmb_tui.cluster.profile_fields import ProfileField, needed, texts_from_profile, values_from_texts
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.profile_check import check_runai_profile

RUNAI_EMPTY = RunaiProfile(name="", base_url="", app_id="", project="")

RUNAI_REACH = (
    ProfileField("name", "name", "your name for it", needed=True),
    ProfileField("base_url", "base URL", "https://HOST/api/v1", needed=True),
    ProfileField("ca_file", "CA file", "additional trusted certificates"),
    ProfileField("app_id", "application id", "of an application or service account", needed=True),
    ProfileField("project", "project", "its quota is used", needed=True),
)
"""Fields for the connection, without the secret."""

_KUBECONFIG = ProfileField("kubeconfig", "kubeconfig", "a file; needed to read logs")

RUNAI_USE = (
    ProfileField("mounts", "mounts", "NAME:PATH:CLAIM, NAME:PATH:CLAIM"),
    ProfileField("work_dir", "work directory", "a path below one of the mounts"),
    ProfileField("node_pool", "node pool", "the project's default"),
    _KUBECONFIG,
)
"""Fields that every workload uses."""

RUNAI_MORE = (
    ProfileField("image_pull_secret", "image pull secret", "the project's"),
    ProfileField("hub_credential", "hub credential", "with the Hugging Face token, for tokenizers"),
    ProfileField("env", "environment", "NAME=value; NAME=value"),
    ProfileField("read_only", "read-only", "no; yes: the cluster is never changed"),
)
"""Fields that some sites need."""

RUNAI_FIELDS = (*RUNAI_REACH, *RUNAI_USE, *RUNAI_MORE)
"""All fields of the form, and flags of `clusters add`."""


def runai_texts_of(profile: RunaiProfile) -> dict[str, str]:
    """Texts of a profile's values in the form, by field; a default value is an empty text."""
    return texts_from_profile(profile, RUNAI_FIELDS, RUNAI_EMPTY)


def runai_reachable(base: RunaiProfile, texts: dict[str, str]) -> RunaiProfile:
    """Make a profile that is sufficient for a connection. Raises InvalidFieldError."""
    needed(RUNAI_REACH[1:], texts)
    fixed = {"name": texts["name"] or base.name or "new", "read_only": base.read_only, "notice": base.notice}
    return _checked(RUNAI_EMPTY, (*RUNAI_REACH, _KUBECONFIG), texts, **fixed)


def runai_profile_of(base: RunaiProfile, texts: dict[str, str]) -> RunaiProfile:
    """Make the complete profile; fields that the form does not show are those of `base`.

    Raises InvalidFieldError for the first invalid field.
    """
    needed(RUNAI_FIELDS, texts)
    return _checked(base, RUNAI_FIELDS, texts)


def _checked(base: RunaiProfile, fields: Iterable[ProfileField], texts: dict[str, str], **more: object) -> RunaiProfile:
    values = values_from_texts(fields, texts, RUNAI_EMPTY)
    # The URL may be pasted from a browser or a recipe's variable, with a slash at its end.
    profile = replace(base, **{**values, "base_url": values["base_url"].rstrip("/"), **more})
    check_runai_profile(profile)
    return profile
