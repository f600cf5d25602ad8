"""`notices`: what has to be said wherever a cluster is named, such as that it is simulated."""

from __future__ import annotations

from llmb_tui.services import Services


def notices(services: Services) -> dict[str, str]:
    """Notices by name of the saved cluster; clusters without one are absent. Raises Trouble as `profiles` does."""
    return {profile.name: profile.notice for profile in services.profiles() if profile.notice}
