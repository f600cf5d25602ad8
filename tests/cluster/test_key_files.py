"""Private keys as OpenSSH and OpenSSL write them, read by the real tools' own files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.ssh.key_files import (
    KeyFileError,
    KeyLockedError,
    WrongPassphraseError,
    load_private_key,
    public_part,
)

PASSPHRASE = "open sesame ä"
TYPES = ("rsa-1024", "ecdsa-256", "ecdsa-384", "ecdsa-521", "ed25519-256")
CIPHERS = subprocess.run(["ssh", "-Q", "cipher"], check=True, capture_output=True, text=True).stdout.split()


def keygen(path: Path, kind: str, *options: str, passphrase: str = PASSPHRASE) -> Path:
    """A key by `ssh-keygen`. One round of bcrypt is enough here; an empty comment ends the file without text."""
    name, _, bits = kind.partition("-")
    command = ["ssh-keygen", "-q", "-t", name, "-b", bits, "-a", "1", "-C", "", *options, "-N", passphrase]
    subprocess.run([*command, "-f", str(path)], check=True)
    return path


def openssl(path: Path, *command: str) -> Path:
    verb, *options = command
    subprocess.run(["openssl", verb, "-out", str(path), *options], check=True, capture_output=True)
    return path


def public_key_of(path: Path) -> str:
    """Public key that `ssh-keygen` reads from a private key file, in base64."""
    command = ["ssh-keygen", "-y", "-P", PASSPHRASE, "-f", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1]


def check_locked(path: Path) -> None:
    """Check the key without its passphrase, with a wrong one and with the right one."""
    with pytest.raises(KeyLockedError):
        load_private_key(path)
    for wrong in ("wrong", PASSPHRASE + " ", "x" * 200):
        with pytest.raises(WrongPassphraseError):
            load_private_key(path, wrong)
    key = load_private_key(path, PASSPHRASE)
    assert key.get_base64() == public_key_of(path)
    assert key.can_sign()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("cipher", CIPHERS)
def test_a_key_is_read_with_every_cipher_of_ssh_keygen(tmp_path: Path, cipher: str, kind: str) -> None:
    check_locked(keygen(tmp_path / "key", kind, "-Z", cipher))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", ["PEM", "PKCS8", "RFC4716"])
def test_a_key_is_read_in_every_format_of_ssh_keygen(tmp_path: Path, form: str, kind: str) -> None:
    check_locked(keygen(tmp_path / "locked", kind, "-m", form))
    plain = keygen(tmp_path / "plain", kind, "-m", form, passphrase="")
    assert load_private_key(plain).get_base64() == public_key_of(plain)


@pytest.fixture(scope="module")
def rsa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return openssl(tmp_path_factory.mktemp("openssl") / "rsa", "genrsa", "2048")


@pytest.mark.parametrize(
    "options",
    [
        ("-v2", "aes-256-cbc"),
        ("-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512"),
        ("-v2", "des3"),
        ("-v1", "PBE-SHA1-3DES"),
        ("-scrypt",),
    ],
)
def test_a_key_of_openssl_is_read_plain_and_encrypted(tmp_path: Path, rsa: Path, options: tuple[str, ...]) -> None:
    assert load_private_key(rsa).get_base64() == public_key_of(rsa)
    command = ["pkcs8", "-topk8", "-in", str(rsa), "-passout", f"pass:{PASSPHRASE}", *options]
    check_locked(openssl(tmp_path / "key", *command))


@pytest.mark.parametrize("command", [("rsa", "-traditional", "-aes192"), ("pkcs8", "-topk8", "-v2", "camellia256")])
def test_an_encryption_that_cannot_be_read_is_named_with_a_remedy_that_works(
    tmp_path: Path, rsa: Path, command: tuple[str, ...]
) -> None:
    path = openssl(tmp_path / "key", *command, "-in", str(rsa), "-passout", f"pass:{PASSPHRASE}")
    path.chmod(0o600)
    for passphrase in (PASSPHRASE, "wrong"):
        with pytest.raises(KeyFileError, match=r"encryption is not supported; `ssh-keygen -p` replaces it") as caught:
            load_private_key(path, passphrase)
        assert not isinstance(caught.value, WrongPassphraseError)
    change = ["ssh-keygen", "-q", "-p", "-P", PASSPHRASE, "-N", PASSPHRASE, "-f", str(path)]
    subprocess.run(change, check=True, stdout=subprocess.DEVNULL)
    check_locked(path)


def test_a_type_that_ssh_servers_refuse_is_named_without_a_passphrase(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = keygen(tmp_path / "dsa", "dsa-1024")
    with pytest.raises(KeyFileError, match="ssh-dss are not supported") as caught:
        load_private_key(path)
    assert not isinstance(caught.value, KeyLockedError)
    assert [str(warning.message) for warning in recwarn] == []  # a warning would be written over the screen


def test_a_curve_that_ssh_does_not_have_is_refused(tmp_path: Path) -> None:
    path = openssl(tmp_path / "key", "ecparam", "-genkey", "-noout", "-name", "secp256k1")
    with pytest.raises(KeyFileError, match="not supported"):
        load_private_key(path)


@pytest.mark.parametrize("cipher", ["aes256-ctr", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"])
def test_the_public_part_of_an_encrypted_key_is_read_without_its_passphrase(tmp_path: Path, cipher: str) -> None:
    path = keygen(tmp_path / "key", "ed25519-256", "-Z", cipher)
    assert public_part(path) == load_private_key(path, PASSPHRASE).asbytes()


def test_a_part_of_a_key_file_is_never_a_key(tmp_path: Path) -> None:
    whole = keygen(tmp_path / "key", "ed25519-256").read_bytes()
    part = tmp_path / "part"
    for size in range(0, len(whole) - len("-----END OPENSSH PRIVATE KEY-----\n"), 7):
        part.write_bytes(whole[:size])
        with pytest.raises(KeyFileError):
            load_private_key(part, PASSPHRASE)
        assert public_part(part) in (b"", public_part(tmp_path / "key"))


@given(st.binary(), st.sampled_from([b"", b"-----BEGIN OPENSSH PRIVATE KEY-----\n", b"-----BEGIN PRIVATE KEY-----\n"]))
def test_no_content_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: bytes, begin: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any key"
    path.write_bytes(begin + content)
    with pytest.raises(KeyFileError):
        load_private_key(path)
    assert public_part(path) == b""
