"""Settings in their layers, and what is said of what is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmb_tui.store.settings import SettingError, Settings, keep_theme, load_settings, settings_in_force

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        file = tmp_path / "config.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return written


def test_nothing_set_is_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "config.toml") == Settings()
    assert {one.source for one in settings_in_force(tmp_path / "config.toml")} == {"default"}


def test_a_later_layer_wins(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write('theme = "nord"\n[verdict]\nthreshold = 0.9\n[limits]\ngpu_hours = 10\n')
    monkeypatch.setenv("LLMB_TUI_VERDICT__THRESHOLD", "0.93")
    monkeypatch.setenv("LLMB_TUI_LIMITS__GPU_HOURS", "20")
    settings = load_settings(file, ["limits.gpu_hours=30"])
    assert (settings.theme, settings.verdict.threshold, settings.limits.gpu_hours) == ("nord", 0.93, 30)
    sources = {one.name: one.source for one in settings_in_force(file, ["limits.gpu_hours=30"])}
    assert sources == {
        "theme": "file",
        "verdict.threshold": "environment",
        "limits.gpu_hours": "flag",
        "limits.suite_gpu_hours": "default",
    }


def test_keys_need_no_quotes_for_their_dots(write: Write) -> None:
    quoted = write('[keys]\n"app.quit" = "ctrl+x"\n"jobs.peek" = "p"\n')
    expected = load_settings(quoted).keys
    assert expected == {"app.quit": "ctrl+x", "jobs.peek": "p"}
    assert load_settings(write('[keys]\napp.quit = "ctrl+x"\njobs.peek = "p"\n')).keys == expected
    assert load_settings(write(""), ["keys.app.quit=ctrl+x", 'keys.jobs.peek="p"']).keys == expected


def test_a_flag_value_needs_no_quotes(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none", ["theme=nord"]).theme == "nord"


@pytest.mark.parametrize(
    ("text", "key", "line", "says"),
    [
        ("\n[verdict]\nthreshold = 3\n", "verdict.threshold", 3, "less than or equal to 1"),
        ("[verdict]\nthresold = 0.9\n", "verdict.thresold", 2, "Did you mean threshold?"),
        ("# mine\nverdicts = 1\n", "verdicts", 2, "Known: theme, verdict, limits, keys"),
        ("verdict = 2\n", "verdict", 1, "dictionary"),
        ("[limits]\ngpu_hours = -1\n", "limits.gpu_hours", 2, "greater than 0"),
        ("[verdict]\nthreshold = true\n", "verdict.threshold", 2, "valid number"),
        ("[limits]\ngpu_hours = true\n", "limits.gpu_hours", 2, "valid number"),
        ('theme = "nord"\n[keys]\nx.y = 3\n', "keys.x.y", 3, "valid string"),
        ("theme = \n", "", 1, "not TOML"),
    ],
)
def test_a_fault_of_the_file_is_named_by_line_and_key(write: Write, text: str, key: str, line: int, says: str) -> None:
    file = write(text)
    with pytest.raises(SettingError) as caught:
        load_settings(file)
    problem = caught.value
    assert (problem.file, problem.line, problem.key, problem.exit_code) == (file, line, key, 1)
    assert f"{file}, line {line}" in problem.what
    assert says in problem.why


def test_a_fault_elsewhere_names_the_variable_or_the_flag(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write("[verdict]\nthreshold = 0.9\n")
    with pytest.raises(SettingError, match=r"--set verdict\.threshold") as caught:
        load_settings(file, ["verdict.threshold=high"])
    assert caught.value.file is None
    with pytest.raises(SettingError, match=r"--set verdict\.threshold"):
        load_settings(file, ["verdict.threshold=true"])
    with pytest.raises(SettingError, match="--set limits"):
        load_settings(file, [f"limits={'[' * 3000}"])
    with pytest.raises(SettingError, match="KEY=VALUE"):
        load_settings(file, ["verdict"])
    monkeypatch.setenv("LLMB_TUI_LIMITS__GPU_HOURS", "many")
    with pytest.raises(SettingError, match="LLMB_TUI_LIMITS__GPU_HOURS"):
        load_settings(file)
    monkeypatch.delenv("LLMB_TUI_LIMITS__GPU_HOURS")
    monkeypatch.setenv("LLMB_TUI_KEYS", '{"app.quit": ')
    with pytest.raises(SettingError, match="environment"):
        load_settings(file)


def test_other_variables_of_the_program_are_not_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMB_TUI_STATE_DIR", str(tmp_path))
    assert load_settings(tmp_path / "config.toml") == Settings()


def test_storing_a_theme_keeps_the_comments_of_the_user(write: Write) -> None:
    file = write("# my cluster is slow\n[verdict]\nthreshold = 0.9  # agreed in May\n")
    keep_theme(file, "nord")
    settings = load_settings(file)
    assert (settings.theme, settings.verdict.threshold) == ("nord", 0.9)
    text = file.read_text(encoding="utf-8")
    assert "# my cluster is slow" in text
    assert "# agreed in May" in text
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_settings_file_that_is_a_link_stays_a_link(tmp_path: Path) -> None:
    path, file = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    path.write_text("[verdict]\nthreshold = 0.9\n", encoding="utf-8")
    file.symlink_to(path)
    keep_theme(file, "nord")
    assert file.is_symlink()
    assert load_settings(path).theme == "nord"


def test_a_theme_makes_the_file(tmp_path: Path) -> None:
    keep_theme(tmp_path / "new" / "config.toml", "nord")
    assert load_settings(tmp_path / "new" / "config.toml").theme == "nord"


def test_an_invalid_table_is_named_whatever_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingError, match="--set verdict"):
        load_settings(tmp_path / "none", ["verdict=1", "verdict.threshold=0.9"])
    monkeypatch.setenv("LLMB_TUI_VERDICT", "1")
    monkeypatch.setenv("LLMB_TUI_VERDICT__THRESHOLD", "0.9")
    with pytest.raises(SettingError):
        load_settings(tmp_path / "none")


def test_no_theme_is_kept_in_a_file_that_cannot_be_read(write: Write) -> None:
    file = write("[verdict\n")
    with pytest.raises(SettingError, match="line 1"):
        keep_theme(file, "nord")
    assert file.read_text(encoding="utf-8") == "[verdict\n"
