"""`note`: what a person says of a run, and its tags."""

from __future__ import annotations

import argparse

from llmb_tui.cli.output import print_json, print_line
from llmb_tui.cli.user import user_services


def note_verb(arguments: argparse.Namespace) -> int:
    """Change the note or the tags of a run, where that is asked for; then say them."""
    notes = user_services(arguments).notes
    note = notes.change(arguments.run, arguments.text, arguments.tag, arguments.untag)
    if arguments.json:
        print_json({"id": arguments.run, "note": note.text, "tags": list(note.tags)})
    elif note:
        print_line(note.words)
    return 0
