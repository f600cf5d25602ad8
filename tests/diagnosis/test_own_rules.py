"""Custom rules of a user: they come first, errors name file, line and key, and a bad rule never stops the program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from llmb_tui.cluster.job_words import pending_reason
from llmb_tui.diagnosis.load import RuleError, example_problems, load_rules
from llmb_tui.diagnosis.rules import rules, use_own_rules
from llmb_tui.errors import LlmbError
from llmb_tui.launch.step_state import explain as explain_step
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.failure import worst
from tests.kit import verbs

GOOD = """\
[[install]]
words = ["Killed"]
reason = "The watcher of the login nodes ends what runs longer than ten minutes there."
fix = "Set a CPU partition in the cluster's profile."
examples = ["Killed"]

[[training]]
words = ["lustre evicted"]
patterns = ['client (?P<node>\\w+): lustre evicted']
reason = "Node {node} lost its file system."
fix = "Leave {node} out, and write to storage@example.org."
examples = ["LustreError: client cn007: lustre evicted"]
counterexamples = ["no lustre evicted anything"]

[[training]]
words = ["rror: known here"]
harmless = true
examples = ["RuntimeError: known here"]

[[pending]]
words = ["Priority"]
reason = "Other jobs are before it; the dashboard shows them."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Directory with the custom rules of a user."""
    own = tmp_path / "config" / "failures"
    own.mkdir(parents=True)
    (own / "site.toml").write_text(GOOD)
    yield own
    use_own_rules(tmp_path / "nowhere")


def test_custom_rules_are_matched_first(folder: Path) -> None:
    before = pending_reason("Priority")
    use_own_rules(folder)
    assert explain_step(["Killed"]).reason.startswith("The watcher of the login nodes")
    assert pending_reason("Priority") == "Other jobs are before it; the dashboard shows them." != before
    assert pending_reason("Resources").startswith("It is next")
    use_own_rules(folder / "nowhere")
    assert pending_reason("Priority") == before


def test_own_words_are_searched_for_in_logs(folder: Path) -> None:
    line = b"INFO client cn007: lustre evicted\n"
    assert worst(line) is None
    use_own_rules(folder)
    failure = worst(line + b"RuntimeError: CUDA out of memory\n")
    assert failure is not None
    assert failure.reason == "Node cn007 lost its file system."
    assert failure.fix == "Leave cn007 out, and write to storage@example.org."


def test_a_custom_rule_can_mark_a_line_as_harmless(folder: Path) -> None:
    assert worst(b"RuntimeError: known here\n") is not None
    use_own_rules(folder)
    assert worst(b"RuntimeError: known here\n") is None


def test_text_matched_by_a_group_is_shown_without_control_characters(folder: Path) -> None:
    (folder / "site.toml").write_text(
        "[[install]]\npatterns = ['lost (?P<what>.+)']\nreason = 'No {what}'\nexamples = ['lost x']\n"
    )
    use_own_rules(folder)
    assert explain_step(["lost a\x1b[31mb\x07"]).reason == "No ab\N{REPLACEMENT CHARACTER}"


class Break(NamedTuple):
    old: str
    new: str
    field: str
    line: int
    reason: str


BROKEN = [
    Break('fix = "Set', 'fixx = "Set', "install[0].fixx", 4, "is not a field of a failure rule file"),
    Break("[[pending]]", "[[queued]]", "queued", 20, "is not a field"),
    Break("[[install]]", "[[install", "", 1, "is not TOML"),
    Break('words = ["Killed"]', 'words = "Killed"', "install[0].words", 2, "array"),
    Break("harmless = true", 'weight = "much"', "training[1].weight", 17, "'cause'"),
    Break('reason = "The w', '# reason = "The w', "install[0].reason", 1, "is missing"),
    Break("harmless = true", 'harmless = true\nreason = "x"', "training[1].reason", 18, "not allowed"),
    Break("harmless = true", "harmless = true\nexit_code = 2", "training[1].exit_code", 18, "no meaning in training"),
    Break('words = ["Killed"]\n', "", "install[0]", 1, "words or patterns are missing"),
    Break('words = ["lustre evicted"]\n', "", "training[0]", 7, "a log is searched for words"),
    Break('["Priority"]', '["Priority", ""]', "pending[0].words[1]", 21, "every text"),
    Break("evicted']", "evicted(']", "training[0].patterns[0]", 9, "regular expression"),
    Break("evicted']", "[[]evicted']", "training[0].patterns[0]", 9, "Possible nested set"),
    Break("'client (?P<node>\\w+): lustre evicted'", "'x?'", "training[0].patterns[0]", 9, "every text"),
    Break("Node {node}", "Node {host}", "training[0].reason", 10, "{host} is not a group of every pattern"),
    Break(
        "evicted']", "evicted', 'a lustre evicted']", "training[0].reason", 10, "{node} is not a group of every pattern"
    ),
    Break("Node {node}", "Node {node:d}", "training[0].reason", 10, "write a literal brace twice"),
    Break("Node {node}", "Node {node.x}", "training[0].reason", 10, "write a literal brace twice"),
    Break("Node {node}", "Node {node", "training[0].reason", 10, "expected '}'"),
    Break('examples = ["Killed"]\n', "", "install[0]", 1, "examples are missing"),
    Break('examples = ["LustreError: client cn007: lustre evicted"]\n', "", "training[0]", 7, "examples"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda case: case.new[:30])
def test_a_broken_file_is_named_with_line_and_key(folder: Path, broken: Break) -> None:
    file = folder / "site.toml"
    assert broken.old in GOOD
    file.write_text(GOOD.replace(broken.old, broken.new, 1))
    with pytest.raises(RuleError) as caught:
        load_rules([folder])
    problem = caught.value
    assert (problem.file, problem.field, problem.line) == (file, broken.field, broken.line)
    assert broken.reason in problem.what
    assert str(file) in problem.what
    assert problem.fix


@pytest.mark.parametrize(
    ("old", "new", "field", "line", "reason"),
    [
        ('["Killed"]\n\n', '["Ended"]\n\n', "install[0].examples[0]", 5, "does not match"),
        ("no lustre evicted anything", "client x: lustre evicted", "training[0].counterexamples[0]", 13, "matches it"),
        ('["RuntimeError: known', '["client x: lustre evicted rror: known', "training[1].examples[0]", 18, "earlier"),
    ],
)
def test_examples_are_tried(  # noqa: PLR0917
    folder: Path, old: str, new: str, field: str, line: int, reason: str
) -> None:
    assert old in GOOD
    (folder / "site.toml").write_text(GOOD.replace(old, new, 1))
    (problem,) = example_problems(load_rules([folder]))
    assert (problem.field, problem.line) == (field, line)
    assert reason in problem.what


def test_a_broken_file_is_reported_once_and_ignored(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.toml").write_text("[[install]]\nwords = 1\n")
    errors: list[LlmbError] = []
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    services.on_broken_file = errors.append
    assert services.catalog is services.catalog
    assert rules("install").match("Killed") is not None
    assert [("broken.toml, line 2: install[0].words" in problem.what) for problem in errors] == [True]
    assert pending_reason("Priority").startswith("Other jobs are before it; the dashboard")


def test_a_broken_file_is_ignored_if_no_error_handler_is_set(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.toml").write_text("[[install]]\nwords = 1\n")
    Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    assert pending_reason("Resources").startswith("It is next")


def test_a_group_reference_refers_to_a_group_of_the_same_pattern(folder: Path) -> None:
    pair = "patterns = ['(first) node', '(cn\\d+) and \\1 again']"
    rule = f'[[install]]\nwords = ["again"]\n{pair}\nreason = "Twice."\nexamples = ["cn1 and cn1 again"]\n'
    (folder / "pair.toml").write_text(rule)
    assert not list(example_problems(load_rules([folder])))
    use_own_rules(folder)
    assert rules("install").match("cn7 and cn7 again") is not None
    assert rules("install").match("cn7 and cn8 again") is None


NESTED = """\
[[training]]
words = ["BOOM"]
patterns = ['BOOM (a|a)+$', 'BOOM (?P<what>[0-9]+)']
reason = "The site's watchdog fired."
examples = ["BOOM aa"]
"""
TRAP = "BOOM " + "a" * 60 + "!"  # the first pattern would try 2^60 ways


def test_a_pattern_that_never_ends_is_stopped_named_and_no_longer_used(folder: Path) -> None:
    (folder / "site.toml").write_text(NESTED)
    reported: list[RuleError] = []
    use_own_rules(folder, reported.append)
    log = f"{TRAP}\n{TRAP}?\nBOOM aa\nRuntimeError: CUDA out of memory\n".encode()
    failure = worst(log)
    assert failure is not None
    assert failure.reason == "A GPU ran out of memory."
    (problem,) = reported
    assert (problem.file.name, problem.line) == ("site.toml", 3)
    assert problem.field == "training[0].patterns[0]"
    assert "takes too long for some texts" in problem.what
    failure = worst(b"BOOM 7\n")  # the rule's other pattern is still used
    assert failure is not None
    assert failure.reason == "The site's watchdog fired."


def test_an_example_on_which_a_pattern_never_ends_is_a_fault_of_the_pattern(folder: Path) -> None:
    (folder / "site.toml").write_text(NESTED.replace('["BOOM aa"]', f'["{TRAP}"]'))
    reported: list[RuleError] = []
    assert not list(example_problems(load_rules([folder], reported.append)))
    assert [problem.field for problem in reported] == ["training[0].patterns[0]"]


def test_config_validate_ends_and_names_a_pattern_that_never_would(folder: Path, tmp_path: Path) -> None:
    (folder / "site.toml").write_text(NESTED.replace('["BOOM aa"]', f'["{TRAP}"]'))
    answer = verbs.run(("config", "validate"), verbs.environment(tmp_path))
    assert answer.returncode == 1
    assert f"{folder}/site.toml, line 3: training[0].patterns[0]: takes too long" in " ".join(answer.stdout.split())


def test_explain_ends_and_names_a_pattern_that_never_would(folder: Path, tmp_path: Path) -> None:
    (folder / "site.toml").write_text(NESTED)
    log = tmp_path / "x.log"
    log.write_text(f"{TRAP}\nRuntimeError: CUDA out of memory\n")
    answer = verbs.run(("explain", str(log)), verbs.environment(tmp_path))
    assert "A GPU ran out of memory." in answer.stdout
    assert "training[0].patterns[0]: takes too long" in answer.stderr


def test_many_slow_searches_end_like_one_that_never_does(folder: Path) -> None:
    (folder / "site.toml").write_text(NESTED)
    reported: list[RuleError] = []
    use_own_rules(folder, reported.append)
    for number in range(400):
        worst(f"BOOM {'a' * 16}! {number}\n".encode())
        if reported:
            break
    assert [problem.field for problem in reported] == ["training[0].patterns[0]"]
