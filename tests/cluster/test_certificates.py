"""Certificates as `ssh-keygen` writes them, whole and changed."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.ssh.certificates import parse_certificate
from tests.cluster.login_node import make_key

NOW = 1_750_000_000.0  # 2025-06-15


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("certificates")
    for name in ("authority", "host"):
        make_key(path / name)
    return path


def blob(directory: Path, *options: str) -> bytes:
    """Host certificate by `ssh-keygen`."""
    command = ["ssh-keygen", "-q", "-s", str(directory / "authority"), "-h", "-I", "x", *options]
    subprocess.run([*command, str(directory / "host.pub")], check=True, stdin=subprocess.DEVNULL)
    return base64.b64decode((directory / "host-cert.pub").read_text().split()[1])


def public(directory: Path, name: str) -> bytes:
    return base64.b64decode((directory / f"{name}.pub").read_text().split()[1])


def test_a_certificate_is_read_with_all_its_statements(directory: Path) -> None:
    data = blob(directory, "-n", "eos,eos.example", "-V", "20250101000000Z:20260101000000Z")
    certificate = parse_certificate(data)
    assert certificate.key == public(directory, "host")
    assert certificate.authority == public(directory, "authority")
    assert certificate.principals == ("eos", "eos.example")
    assert (certificate.valid_from, certificate.valid_before) == (1_735_689_600, 1_767_225_600)
    assert certificate.host_fault("EOS", NOW) == ""
    assert certificate.host_fault("eos", certificate.valid_before - 1) == ""
    assert "expired" in certificate.host_fault("eos", certificate.valid_before)
    assert "not valid before" in certificate.host_fault("eos", certificate.valid_from - 1)
    assert "other names" in certificate.host_fault("eos.example.org", NOW)


def test_critical_options_of_a_host_are_refused(directory: Path) -> None:
    certificate = parse_certificate(blob(directory, "-O", "critical:force-command=true"))
    assert "critical options" in certificate.host_fault("eos", NOW)


def test_no_changed_byte_leaves_a_certificate_valid(directory: Path) -> None:
    data = blob(directory, "-n", "eos", "-V", "20250101000000Z:20260101000000Z")
    for position in range(len(data)):
        changed = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        try:
            certificate = parse_certificate(changed)
        except ValueError:
            continue
        is_same_key = certificate.key == public(directory, "host")
        is_trusted = certificate.authority == public(directory, "authority")
        assert certificate.host_fault("eos", NOW) or not (is_same_key and is_trusted), position
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"too short|no supported"):
            parse_certificate(data[:end])
    with pytest.raises(ValueError, match="follows"):
        parse_certificate(data + b"x")


@given(st.binary())
def test_no_content_breaks_the_reader(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_certificate(content)
