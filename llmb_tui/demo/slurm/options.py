"""`Parser`: the options of one simulated program, as llmb-tui spells them. Anything else is refused in words."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # the one of `typing` takes too long to import
if TYPE_CHECKING:
    from typing import NoReturn


class Refusal(Exception):
    """A command ends here: `text` goes to stderr, `code` is its exit status."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


def not_offered(program: str, what: str, *, of: str = "Slurm") -> Refusal:
    """The refusal of what no journey of llmb-tui needs; `of` names what is simulated."""
    code = 255 if program in ("sbatch", "srun") else 1  # as Slurm ends them at an option that it does not know
    return Refusal(f"{program}: {what}: the simulated {of} of the demo does not offer that", code)


class _Formatter(argparse.HelpFormatter):
    """argparse makes one for each option, which would ask the terminal for its width, and import much for that."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


class Parser(argparse.ArgumentParser):
    """Options with a value and flags, each in the one spelling that is sent. Of one given twice the last counts."""

    def __init__(
        self, program: str, values: str = "", flags: str = "", numbers: str = "", *, of: str = "Slurm"
    ) -> None:
        """`values`, `flags`, `numbers`: names of options with a text, without a value, and with a number."""
        super().__init__(program, add_help=False, allow_abbrev=False, formatter_class=_Formatter)
        self._of = of
        for name in values.split():
            self.add_argument(name)
        for name in numbers.split():
            self.add_argument(name, type=int)
        for name in flags.split():
            self.add_argument(name, action="store_true")

    def parse(self, words: list[str]) -> argparse.Namespace:
        """Read a command line. Raises Refusal."""
        values, unknown = self.parse_known_args(words)
        if unknown:
            kind = "option" if unknown[0].startswith("-") else "argument"
            self.error(f"unrecognized {kind} '{unknown[0]}'")
        return values

    def error(self, message: str) -> NoReturn:
        """What argparse calls for a value that does not fit."""
        raise not_offered(self.prog, message, of=self._of)
