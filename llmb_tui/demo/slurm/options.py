"""Command line options as getopt reads them, with the words in which Slurm's programs refuse them."""

from __future__ import annotations

from dataclasses import dataclass

_TAKES = {"=": "required", "?": "optional", "~": "next word"}


class Refusal(Exception):
    """A command ends here: `text` goes to stderr, `code` is its exit status."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


@dataclass(frozen=True)
class Parsed:
    """What a command line asks for. Of an option that is given twice the last value counts."""

    values: dict[str, str]
    """By long name; a flag and an optional argument that is left out have an empty value."""
    operands: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: str = "") -> str:
        """The value of an option."""
        return self.values.get(name, default)


class Parser:
    """One program's options, written as words.

    `account=/A` takes an argument and has the short form -A, `exclusive?` may take an argument that is attached to
    it, `jobs~/j` takes the next word if that is no option, `requeue` takes nothing. Unique beginnings of long names
    are understood.
    """

    def __init__(self, program: str, words: str, *, refused: int = 1, hint: bool = True) -> None:
        self.program = program
        self._refused = refused
        self._hint = f'\nTry "{program} --help" for more information' if hint else ""
        self._takes: dict[str, str] = {}
        self._short: dict[str, str] = {}
        for word in words.split():
            spelled, _, letter = word.partition("/")
            name = spelled.rstrip("=?~")
            self._takes[name] = _TAKES.get(spelled[len(name) :], "none")
            if letter:
                self._short[letter] = name

    def parse(self, arguments: list[str], *, until_operand: bool = False) -> Parsed:
        """Read a command line; with `until_operand` the first operand ends the options. Raises Refusal."""
        values: dict[str, str] = {}
        operands: list[str] = []
        rest = list(arguments)
        while rest:
            word = rest.pop(0)
            if word == "--":
                operands += rest
                break
            if word.startswith("--"):
                name, value = self._long(word, rest)
                values[name] = value
            elif word.startswith("-") and len(word) > 1:
                values.update(self._letters(word[1:], rest))
            else:
                operands.append(word)
                if until_operand:
                    operands += rest
                    break
        return Parsed(values, tuple(operands))

    def _long(self, word: str, rest: list[str]) -> tuple[str, str]:
        typed, equals, value = word[2:].partition("=")
        names = [typed] if typed in self._takes else [name for name in self._takes if name.startswith(typed)]
        if not names:
            raise self._refuse(f"unrecognized option '{word}'")
        if len(names) > 1:
            possible = " ".join(f"'--{name}'" for name in names)
            raise self._refuse(f"option '{word}' is ambiguous; possibilities: {possible}")
        takes = self._takes[names[0]]
        if takes == "none" and equals:
            raise self._refuse(f"option '--{names[0]}' doesn't allow an argument")
        if takes == "required" and not equals:
            if not rest:
                raise self._refuse(f"option '--{names[0]}' requires an argument")
            value = rest.pop(0)
        if takes == "next word" and not equals and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        return names[0], value

    def _letters(self, letters: str, rest: list[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter not in self._short:
                raise self._refuse(f"invalid option -- '{letter}'")
            name = self._short[letter]
            if self._takes[name] == "none":
                values[name] = ""
                continue
            if not letters and self._takes[name] == "required" and not rest:
                raise self._refuse(f"option requires an argument -- '{letter}'")
            optional = self._takes[name] == "optional" or not rest or rest[0].startswith("-")
            if not letters and (self._takes[name] == "required" or not optional):
                letters = rest.pop(0)
            values[name], letters = letters, ""
        return values

    def _refuse(self, text: str) -> Refusal:
        return Refusal(f"{self.program}: {text}{self._hint}", self._refused)
