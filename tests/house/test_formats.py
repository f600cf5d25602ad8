"""Numbers and times become text in `language/`: a second format elsewhere would write a quantity in two ways."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "llmb_tui"
OWN_FORMATS = {
    ("answers/writers/svg.py", ".1f"): "coordinates of the picture",
    ("answers/writers/svg.py", "g"): "its size",
    ("cli/suite.py", ".1f"): "the value of a flag, which is copied into a shell",
    ("fit/store.py", ".6g"): "coefficients are stored in six digits",
    ("launch/llmb/run.py", ".2f"): "a release that YAML takes for a number: 25.10",
    ("launch/naming.py", "strftime"): "the time in a run's id",
    ("ui/screens/results.py", "strftime"): "the date in a file's name",
}
"""(file, format) outside `language/`, with the reason why the output is not a quantity for people."""
# Digits, thousands separators or a decimal presentation; widths, alignments, bits and hexadecimal digits do not count.
_NUMBER = re.compile(r"[,_.]|[deEfFgGn%]$|strftime")
_TEMPLATE = re.compile(r"\{[^{}]*:([^{}]*)\}")


def formats(source: str) -> Iterator[str]:
    """Each format of a number or a time in a module: specs of f-strings and of `format`, and `strftime`."""
    for node in ast.walk(ast.parse(source)):
        specs = []
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            specs = [ast.unparse(node.format_spec).removeprefix("f").strip("'\"")]
        elif isinstance(node, ast.Attribute) and node.attr == "format" and isinstance(node.value, ast.Constant):
            specs = _TEMPLATE.findall(str(node.value.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "format":
            specs = [ast.unparse(node.args[-1]).strip("'\"")]
        elif isinstance(node, ast.Attribute) and node.attr == "strftime":
            specs = ["strftime"]
        yield from (spec for spec in specs if _NUMBER.search(re.sub(r"\{[^{}]*\}", "", spec)))


def test_only_language_and_those_with_a_reason_format_numbers() -> None:
    """`demo/` and `remote/` print the same digits as Slurm, Run:ai and the training."""
    found = {
        (str(path.relative_to(PACKAGE)), spec)
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("language", "demo", "remote")
        for spec in formats(path.read_text())
    }
    assert found == set(OWN_FORMATS)


def test_a_format_is_found_however_it_is_written() -> None:
    for line in (
        'f"{x:.2f}"', 'f"{x:,}"', 'f"{x:{sign}.2g}"', 'f"{x:>9.1f}"', 'f"{x:.{n}f}"', 'f"{x:.0%}"',
        '"{:,.1f}".format(x)', 'show("{:.2f}".format)', 'format(x, ".3g")', 'time.strftime("%H:%M")',
    ):  # fmt: skip
        assert list(formats(line)), line
    for line in ('f"{x:>9}"', 'f"{x:<{width}}"', 'f"{x!r:^20}"', 'f"{x:02}"', '"{a}".format(a=x)', 'f"{x}"'):
        assert not list(formats(line)), line
