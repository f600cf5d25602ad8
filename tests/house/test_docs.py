"""The program accepts the commands and files in the docs and in its own messages; the targets and links exist."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import llmb_tui
from llmb_tui.cli.arguments import parser
from llmb_tui.errors import LlmbError
from tests.baseline.answers import copy_home
from tests.kit import verbs

ROOT = Path(llmb_tui.__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
EXAMPLE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
ITEM = "ngc"
"""Placeholder for values that messages insert and arguments that sentences omit; also the name of an API key."""


def examples(page: Path, language: str) -> list[str]:
    return [text for kind, text in EXAMPLE.findall(page.read_text()) if kind == language]


def lines(page: Path) -> Iterator[str]:
    """Commands of the page's shell examples, each without its comment."""
    for example in examples(page, "sh"):
        for line in example.splitlines():
            yield from (command.strip() for command in line.partition(" #")[0].split(";") if command.strip(" #"))


def spans(text: str) -> list[str]:
    """Texts between backticks, each as one line."""
    return [" ".join(span.split()) for span in SPAN.findall(EXAMPLE.sub("", text))]


def messages() -> Iterator[str]:
    """Texts in the program's source; each value that an f-string inserts is one word."""
    for file in sorted((ROOT / "llmb_tui").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else ITEM for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def words(command: str) -> list[str]:
    """Arguments of a command, with optional ones included and `…` removed."""
    return [word for word in shlex.split(re.sub(r"[][]", "", command)[len("llmb-tui ") :]) if word != "…"]


def accepts(arguments: list[str]) -> None:
    """Parse the arguments; LlmbError if the parser refuses them. After `--help` and `--version` the parser exits."""
    with contextlib.suppress(SystemExit):
        parser().parse_args(arguments)


COMMANDS = [(page.name, line) for page in PAGES for line in lines(page)]


@pytest.mark.parametrize("command", sorted({line for _, line in COMMANDS if line.startswith("llmb-tui")}))
def test_every_command_of_an_example_is_parsed(command: str) -> None:
    accepts(words(command))


def test_examples_contain_only_commands_of_this_program_and_make() -> None:
    others = [line for _, line in COMMANDS if line.split()[0] not in ("llmb-tui", "make")]
    assert others == []
    assert {page for page, _ in COMMANDS} >= {"README.md", "verbs.md", "results.md", "suites.md", "share.md"}


SHOWN = re.compile(r"^```sh\n(llmb-tui [^\n]*)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_OUTPUTS = [match.groups() for page in PAGES for match in SHOWN.finditer(page.read_text())]


@pytest.mark.parametrize(("command", "output"), SHOWN_OUTPUTS, ids=[command for command, _ in SHOWN_OUTPUTS])
def test_an_example_prints_the_output_that_the_page_shows(command: str, output: str, tmp_path: Path) -> None:
    """On the stored runs of `tests/baseline` and the cluster of docs/clusters.md; `…` stands for omitted text."""
    home = tmp_path / "home"
    copy_home(home)
    (home / "config/clusters/eos.toml").write_text(examples(ROOT / "docs/clusters.md", "toml")[0])
    pattern = re.escape(output).replace("\n…\\\n", "\n(?s:.*)\n").replace("…", ".*")
    printed = verbs.run(tuple(words(command)), verbs.environment(home)).stdout
    assert re.fullmatch(pattern, printed), printed


def test_examples_with_output_are_found() -> None:
    assert len(SHOWN_OUTPUTS) >= 5


MENTIONED = sorted(
    {
        span
        for text in (*(page.read_text() for page in PAGES), *messages())
        for span in spans(text)
        if span.startswith("llmb-tui ")
    }
)


@pytest.mark.parametrize("command", MENTIONED)
def test_every_command_of_a_sentence_is_parsed(command: str) -> None:
    """A sentence may omit arguments that every such command needs, such as the file of `llmb-tui verify`."""
    given = words(command)
    if len(given) == 1:
        given.append("--help")
    try:
        accepts(given)
    except LlmbError as error:
        if "required" not in error.what:
            raise
        accepts([*given, ITEM])


def test_messages_are_searched() -> None:
    assert len(MENTIONED) > 40
    assert f"llmb-tui secrets {ITEM} --give hugging-face" in MENTIONED


@pytest.mark.parametrize("command", ["jobs --nowhere", "nothing", "suite begin x", "secrets x --give both"])
def test_an_unknown_phase_would_be_found(command: str) -> None:
    with pytest.raises(LlmbError):
        accepts(words(f"llmb-tui {command}"))


TARGETS = re.compile(r"make((?: [a-z-]+)+)(?: [A-Z]+=|$)")


def test_the_docs_name_the_targets_of_make_and_no_others() -> None:
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = [command for page in PAGES for command in (*lines(page), *spans(page.read_text()))]
    named = {target for command in commands if (found := TARGETS.match(command)) for target in found[1].split()}
    assert named == set(phony.replace("\\\n", "").split())


LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


ANCHOR = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub generates them."""
    headings = re.findall(r"^#+ (.*)$", EXAMPLE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_heading_that_a_page_links_to_exists(page: Path) -> None:
    links = [(page.parent / file if file else page, anchor) for file, anchor in ANCHOR.findall(page.read_text())]
    assert [(file.name, anchor) for file, anchor in links if anchor not in anchors(file)] == []


def test_the_files_of_the_docs_are_valid(tmp_path: Path) -> None:
    """Each TOML example, where its page says that the file belongs."""
    config = tmp_path / "config"
    places = {
        "clusters": config / "clusters/eos.toml",
        "runai": config / "clusters/dgxc.toml",
        "failure-rules": config / "failures/site.toml",
        "settings": config / "config.toml",
        "suites": tmp_path / "weekly.toml",
    }
    texts_of = {page.stem: examples(page, "toml") for page in PAGES if examples(page, "toml")}
    assert {name: len(texts) for name, texts in texts_of.items()} == dict.fromkeys(places, 1)
    for name, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(texts_of[name][0])

    variables = verbs.environment(tmp_path)
    validated = verbs.run(("config", "validate"), variables)
    assert validated.returncode == 0, validated.stderr + validated.stdout
    planned = verbs.run(("suite", "plan", str(places["suites"]), "--offline", "--json"), variables)
    assert planned.returncode == 0, planned.stderr
    assert verbs.run(("clusters",), variables).stdout.count("\n") == 3, "a heading and two clusters"
