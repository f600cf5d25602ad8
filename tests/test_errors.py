"""Remedies for system errors."""

from __future__ import annotations

import pytest

from llmb_tui.errors import remedy_in


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("mkdir: cannot create directory '/lustre/a': No space left on device", "Free some space."),
        ("cat: write error: Disk quota exceeded", "Free some space, or ask for a larger quota."),
        (
            "mkdir: cannot create directory '/opt/a': Read-only file system",
            "Its file system is read-only: choose another directory.",
        ),
        ("/lustre/a is a symbolic link, or lies behind one.", ""),
        ("", ""),
    ],
)
def test_a_remedy_is_given_only_if_the_message_names_the_error(text: str, remedy: str) -> None:
    assert remedy_in(text) == remedy
