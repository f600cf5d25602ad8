"""Files of a run that may be fetched, for any names that a server reports."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster_files.left_files import FileKind, kind_of, parse_listing
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line

ALL: frozenset[FileKind] = frozenset(("profile", "trace", "log"))
FOLDER = ("folder", "/lustre/e/t", "")


def file(name: str, size: str = "10\n") -> tuple[str, str, str]:
    return "file", name, size


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("./nsys_profile/profile_1234.nsys-rep", "profile"),
        ("./nsys/grok1_314b_fp8_512g_7_0_0.nsys-rep", "profile"),
        ("./torch_profile/rank0.json.gz", "trace"),
        ("./rank-0.1767.pt.trace.json", "trace"),
        ("./log-a.t_7_0.out", "log"),
        ("./vboost.err", "log"),
        ("./launch.json", None),
        ("./configs/config.yaml", None),
    ],
)
def test_kind_by_name(name: str, kind: FileKind | None) -> None:
    assert kind_of(name) == kind


def test_only_files_of_the_requested_kinds_are_listed() -> None:
    parts = [FOLDER, file("./nsys_profile/p_1.nsys-rep"), file("./log-a.t_7_0.out", "3\n"), file("./launch.json")]
    left = parse_listing(parts, frozenset(("profile",)))
    assert [(file.name, file.kind, file.size) for file in left.files] == [("nsys_profile/p_1.nsys-rep", "profile", 10)]
    assert left.left_out == ()


def test_links_and_other_non_files_and_outputs_with_tokens_are_left_out_with_the_reason() -> None:
    parts = [
        FOLDER, ("link", "./a.out", ""), ("special", "./b.out", ""), file("./sbatch_a.t_7.out"), file("./c.out", "?\n"),
    ]  # fmt: skip
    left = parse_listing(parts, ALL)
    assert left.files == ()
    reasons = dict(left.left_out)
    assert "symbolic link" in reasons["a.out"]
    assert "not a regular file" in reasons["b.out"]
    assert "tokens" in reasons["sbatch_a.t_7.out"]
    assert "size" in reasons["c.out"]


HOSTILE = (
    "../../.ssh/authorized_keys.log", "./../x.out", "/etc/cron.d/x.log", "./a/../../x.out", "./a//x.out", "./x\ry.out",
    "./\x1b[2Jx.out", "x.out", "./a\\..\\x.out", "./" + "n" * 230 + ".out", "./.", "./a/./x.out", "./caf\ufffd.out", "",
    "./x\u202etxt.out", "./..",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_leads_elsewhere_or_cannot_be_written_here_is_not_taken(name: str) -> None:
    left = parse_listing([FOLDER, file(name)], ALL)
    assert left.files == ()
    assert len(left.left_out) == 1


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("./\\\n\r\x1e~"), max_size=40))
def test_any_file_name_from_the_server_stays_below_the_folder(name: str) -> None:
    for left_file in parse_listing([FOLDER, file(name), file(f"./{name}.out")], ALL).files:
        parts = PurePosixPath(left_file.name).parts
        assert not left_file.name.startswith("/")
        assert ".." not in parts
        assert clean_line(left_file.name) == left_file.name
        assert "/".join(parts) == left_file.name


@pytest.mark.parametrize("folder", ["", "relative", "/a\x1b[2J", "/caf\ufffd"])
def test_a_folder_that_cannot_be_named_is_refused(folder: str) -> None:
    with pytest.raises(LlmbError):
        parse_listing([("folder", folder, ""), file("./a.out")], ALL)


def test_of_a_folder_that_runs_share_only_the_files_of_the_jobs() -> None:
    parts = [FOLDER, file("./log-nemo_grok1_314b_512_48123.out"), file("./log-nemo_grok1_314b_512_148123.out")]
    left = parse_listing([*parts, file("./nsys/grok1_314b_fp8_512g_48123_0_0.nsys-rep")], ALL, ("48123",))
    assert [file.name for file in left.files] == [
        "log-nemo_grok1_314b_512_48123.out", "nsys/grok1_314b_fp8_512g_48123_0_0.nsys-rep",
    ]  # fmt: skip


def test_files_beyond_the_limit_are_reported() -> None:
    assert "more than" in parse_listing([FOLDER, ("more", "", "")], ALL).left_out[0][1]
