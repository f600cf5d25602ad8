"""The fields of a Run:ai profile that a person gives, for a form and for flags: text, and back. Pure."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.cluster.profile_fields import ProfileField, environment_of, flag_of, needed, parts_of, text_of
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

RUNAI_USE = (
    ProfileField("mounts", "mounts", "NAME:PATH:CLAIM, NAME:PATH:CLAIM"),
    ProfileField("work_dir", "work directory", "a path below one of the mounts"),
    ProfileField("node_pool", "node pool", "the project's default"),
    ProfileField("kubeconfig", "kubeconfig", "a file; without it no log is read from here"),
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
    values = {field.name: getattr(profile, field.name) for field in RUNAI_FIELDS}
    return {name: text_of(value) if value != getattr(RUNAI_EMPTY, name) else "" for name, value in values.items()}


def runai_reachable(base: RunaiProfile, texts: dict[str, str]) -> RunaiProfile:
    """The profile as far as a connection needs it. Raises WrongField."""
    needed(RUNAI_REACH[1:], texts)
    profile = replace(
        RUNAI_EMPTY,
        name=texts["name"] or base.name or "new",
        base_url=_base_url(texts),
        ca_file=texts["ca_file"] or None,
        app_id=texts["app_id"],
        project=texts["project"],
        kubeconfig=texts["kubeconfig"] or None,
        read_only=base.read_only,
        notice=base.notice,
    )
    check_runai_profile(profile)
    return profile


def runai_profile_of(base: RunaiProfile, texts: dict[str, str]) -> RunaiProfile:
    """The whole profile; what the form does not show is the base's.

    Raises WrongField for the first field that cannot be right.
    """
    needed(RUNAI_FIELDS, texts)
    profile = replace(
        base,
        name=texts["name"],
        base_url=_base_url(texts),
        app_id=texts["app_id"],
        project=texts["project"],
        mounts=parts_of(texts["mounts"]),
        work_dir=texts["work_dir"],
        node_pool=texts["node_pool"] or None,
        kubeconfig=texts["kubeconfig"] or None,
        ca_file=texts["ca_file"] or None,
        image_pull_secret=texts["image_pull_secret"] or None,
        hub_credential=texts["hub_credential"] or None,
        env=environment_of(texts["env"]),
        read_only=flag_of("read_only", texts["read_only"], RUNAI_EMPTY.read_only),
    )
    check_runai_profile(profile)
    return profile


def _base_url(texts: dict[str, str]) -> str:
    """As it is pasted from a browser's line or a recipe's variable: a slash at its end means nothing."""
    return texts["base_url"].rstrip("/")
