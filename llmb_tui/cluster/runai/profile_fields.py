"""The fields of a Run:ai profile that a person gives, for a form and for flags: text, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from llmb_tui.cluster.profile_fields import ProfileField, needed, texts_from_profile, values_from_texts
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.profile_check import check_runai_profile

RUNAI_EMPTY = RunaiProfile(name="", base_url="", app_id="", project="")

RUNAI_REACH = (
    ProfileField("name", "name", "as you call it", needed=True),
    ProfileField("base_url", "base URL", "https://HOST/api/v1", needed=True),
    ProfileField("ca_file", "CA file", "certificates beside the system's own"),
    ProfileField("app_id", "application id", "of an application or service account", needed=True),
    ProfileField("project", "project", "whose quota it runs on", needed=True),
)
"""What a connection needs, but the secret."""

_KUBECONFIG = ProfileField("kubeconfig", "kubeconfig", "a file; without it no log is read from here")

RUNAI_USE = (
    ProfileField("mounts", "mounts", "NAME:PATH:CLAIM, NAME:PATH:CLAIM"),
    ProfileField("work_dir", "work directory", "a path below one of the mounts"),
    ProfileField("node_pool", "node pool", "the project's default"),
    _KUBECONFIG,
)
"""What every workload uses."""

RUNAI_MORE = (
    ProfileField("image_pull_secret", "image pull secret", "what the project has"),
    ProfileField("hub_credential", "hub credential", "with the Hugging Face token, for its tokenizers"),
    ProfileField("env", "environment", "NAME=value; NAME=value"),
    ProfileField("read_only", "observer mode", "no; yes changes nothing there"),
)
"""What some sites need."""

RUNAI_FIELDS = (*RUNAI_REACH, *RUNAI_USE, *RUNAI_MORE)
"""The form, and the flags of `clusters add`."""


def runai_texts_of(profile: RunaiProfile) -> dict[str, str]:
    """The profile's values as they stand in the form, by field; empty stands for what is right for most."""
    return texts_from_profile(profile, RUNAI_FIELDS, RUNAI_EMPTY)


def runai_reachable(base: RunaiProfile, texts: dict[str, str]) -> RunaiProfile:
    """The profile as far as a connection needs it. Raises WrongField."""
    needed(RUNAI_REACH[1:], texts)
    kept = {"name": texts["name"] or base.name or "new", "read_only": base.read_only, "notice": base.notice}
    return _checked(RUNAI_EMPTY, (*RUNAI_REACH, _KUBECONFIG), texts, **kept)


def runai_profile_of(base: RunaiProfile, texts: dict[str, str]) -> RunaiProfile:
    """The whole profile; what the form does not show is the base's.

    Raises WrongField for the first field that cannot be right.
    """
    needed(RUNAI_FIELDS, texts)
    return _checked(base, RUNAI_FIELDS, texts)


def _checked(base: RunaiProfile, fields: Iterable[ProfileField], texts: dict[str, str], **more: object) -> RunaiProfile:
    values = values_from_texts(fields, texts, RUNAI_EMPTY)
    # As it is pasted from a browser's line or a recipe's variable: a slash at its end means nothing.
    profile = replace(base, **{**values, "base_url": values["base_url"].rstrip("/"), **more})
    check_runai_profile(profile)
    return profile
