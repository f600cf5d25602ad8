"""`Trouble`: an error that a person can act on."""

from __future__ import annotations


class Trouble(Exception):
    """Something failed: what happened, why as far as is known, and what to do.

    `exit_code` is what a verb answers with: 1 when the request is wrong or impossible, 2 when the
    cluster or the machine failed (CONTRIBUTING.md, "Verbs"). The texts may hold remote text: clean it
    with `llmb_tui.text.clean` before it comes here.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", exit_code: int = 2) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.exit_code = exit_code
        self.run_id: str | None = None
        """The run that it is about, where whoever asked does not know its id yet."""

    def __str__(self) -> str:
        """The three parts as lines, without the empty ones."""
        return "\n".join(part for part in (self.what, self.why, self.fix) if part)
