"""`Parser`: options of a simulated program, in the spelling of llmb-tui. Other options are refused with a message."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # importing it from `typing` takes too long
if TYPE_CHECKING:
    from typing import NoReturn


class RefusedError(Exception):
    """Ends a command: `text` goes to stderr, `code` is its exit status."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


def not_offered(program: str, what: str, *, system: str = "Slurm") -> RefusedError:
    """Refusal of an option that llmb-tui never uses; `system` names the simulated program or site."""
    code = 255 if program in ("sbatch", "srun") else 1  # Slurm's exit codes for an unknown option
    return RefusedError(f"{program}: {what}: the simulated {system} of the demo does not offer that", code)


class _Formatter(argparse.HelpFormatter):
    """Cheap formatter: argparse makes one per option, which would query the terminal's width, with slow imports."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


class Parser(argparse.ArgumentParser):
    """Options with a value and flags, each in one spelling. The last one of repeated options counts."""

    def __init__(
        self, program: str, values: str = "", flags: str = "", numbers: str = "", *, system: str = "Slurm"
    ) -> None:
        """`values`, `flags`, `numbers`: names of options with text, without value, and with a number."""
        super().__init__(program, add_help=False, allow_abbrev=False, formatter_class=_Formatter)
        self._system = system
        for name in values.split():
            self.add_argument(name)
        for name in numbers.split():
            self.add_argument(name, type=int)
        for name in flags.split():
            self.add_argument(name, action="store_true")

    def parse(self, words: list[str]) -> argparse.Namespace:
        """Read a command line. Raises RefusedError."""
        values, unknown = self.parse_known_args(words)
        if unknown:
            kind = "option" if unknown[0].startswith("-") else "argument"
            self.error(f"unrecognized {kind} '{unknown[0]}'")
        return values

    def error(self, message: str) -> NoReturn:
        """Called by argparse for an invalid value."""
        raise not_offered(self.prog, message, system=self._system)
