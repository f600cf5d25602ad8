"""A compressed log is read as its text; a damaged, incomplete or endless one says so, in every verb."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llmb_tui.cli import main
from llmb_tui.watch import compressed
from llmb_tui.watch.compressed import is_compressed, open_log

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CASE = Path(__file__).parents[1] / "diagnosis" / "cases" / "12-nemo-run-torchrun-prefix.log"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda text: zstd.compress(text, options={zstd.CompressionParameter.checksum_flag: 1}),  # as `zstd` does
}


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLMB_TUI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("LLMB_TUI_CONFIG_DIR", str(tmp_path / "config"))


def packed(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "log.packed"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", PACKERS)
def test_the_text_is_read_in_pieces_of_any_size(name: str, tmp_path: Path) -> None:
    text = b"".join(b"line %d of a log\n" % number for number in range(50_000))
    half = len(text) // 2
    path = packed(tmp_path, PACKERS[name](text[:half]) + PACKERS[name](text[half:]))  # as `cat a.gz b.gz`
    assert is_compressed(path)
    for size in (1 << 20, 997):
        with open_log(path) as file:
            assert b"".join(iter(lambda: file.read(size), b"")) == text  # noqa: B023 - called at once


def test_a_text_is_returned_as_it_is(tmp_path: Path) -> None:
    for text in (b"", b"\x1f", b"BZ is no magic\n"):
        path = packed(tmp_path, text)
        assert not is_compressed(path)
        with open_log(path) as file:
            assert file.read() == text


@pytest.mark.parametrize("name", PACKERS)
def test_an_incomplete_or_damaged_log_is_reported(name: str, tmp_path: Path) -> None:
    data = PACKERS[name](CASE.read_bytes())
    with open_log(packed(tmp_path, data[:-9])) as file, pytest.raises(OSError, match=f"{name} data is incomplete"):
        file.read()
    middle = len(data) // 2
    broken = data[:middle] + bytes(byte ^ 0xFF for byte in data[middle : middle + 20]) + data[middle + 20 :]
    with open_log(packed(tmp_path, broken)) as file, pytest.raises(OSError, match=f"{name} data is (?:damaged|incomp)"):
        file.read()
    with open_log(packed(tmp_path, data + b"more")) as file, pytest.raises(OSError, match=r"damaged|incomplete"):
        file.read()


@pytest.mark.parametrize("name", PACKERS)
def test_a_log_that_unpacks_to_too_much_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compressed, "MOST_BYTES", 10**6)
    path = packed(tmp_path, PACKERS[name](bytes(8 << 20)))
    assert path.stat().st_size < 1 << 16
    assert main(["explain", str(path)]) == 1
    assert f"{name} data unpacks to more than 1 MB: unpack it first" in capsys.readouterr().err


@pytest.mark.parametrize("name", PACKERS)
def test_each_verb_reads_a_compressed_log(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = packed(tmp_path, PACKERS[name](CASE.read_bytes()))
    assert main(["explain", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["steps"], document["causes"][0]["line_number"]) == (3, 6)
    assert main(["results", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["last_step_time_s"] is not None
    assert main(["logs", str(path)]) == 0
    assert "FileNotFoundError: [Errno 2]" in capsys.readouterr().out
    path.write_bytes(path.read_bytes()[:-5])
    for verb in ("explain", "results", "logs"):
        assert main([verb, str(path)]) != 0
        assert f"Its {name} data is incomplete." in capsys.readouterr().err
