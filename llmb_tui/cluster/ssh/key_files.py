"""Private keys in files: OpenSSH's own format with every cipher of `ssh-keygen -Z`, and PEM (PKCS#1, SEC1, PKCS#8).

Paramiko reads neither PKCS#8 nor AES-GCM, and reports a wrong passphrase like an unknown format. `cryptography` reads
all key types, and three of OpenSSH's ten ciphers.
"""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import bcrypt
import paramiko
from cryptography.exceptions import InvalidSignature, InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherAlgorithm, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES, ChaCha20
from cryptography.hazmat.primitives.poly1305 import Poly1305
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from llmb_tui.cluster.ssh.wire import Fields, string

_BEGIN, _END = b"-----BEGIN OPENSSH PRIVATE KEY-----", b"-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"
_UNKNOWN_FORMAT = "unknown format of a private key; an agent may be able to load it"


class KeyFileError(Exception):
    """The file holds no private key that can be used; the text is the reason."""


class KeyLockedError(KeyFileError):
    """The key is encrypted, and no passphrase was given."""


class WrongPassphraseError(KeyFileError):
    """The passphrase does not decrypt the key."""


class _Container(NamedTuple):
    """Parts of a private key in OpenSSH's own format."""

    cipher: str
    derivation: str
    options: bytes
    public: bytes
    kind: str
    """Key type, such as `ssh-rsa`."""
    private: bytes
    tag: bytes


def load_private_key(path: Path, passphrase: str | None = None) -> paramiko.PKey:
    """Load a private key. Raises KeyLockedError, WrongPassphraseError, another KeyFileError, or OSError."""
    data = path.read_bytes()
    word = None if passphrase is None else passphrase.encode()
    container = _container(data)
    return _pem_key(data, word) if container is None else _openssh_key(container, word)


def public_part(path: Path) -> bytes:
    """Public key in a private key file of OpenSSH's own format, which does not encrypt it; empty in other files."""
    try:
        container = _container(path.read_bytes())
    except (OSError, KeyFileError):
        return b""
    return b"" if container is None else container.public


def _container(data: bytes) -> _Container | None:
    """Parse OpenSSH's own format; None for other formats. Raises KeyFileError if the file is damaged."""
    _, begin, rest = data.partition(_BEGIN)
    if not begin:
        return None
    try:
        binary = base64.b64decode(b"".join(rest.partition(_END)[0].split()), validate=True)
        if not binary.startswith(_MAGIC):
            raise ValueError
        fields = Fields(binary[len(_MAGIC) :])
        cipher, derivation, options = fields.text(), fields.text(), fields.string()
        if fields.number(4) != 1:
            raise ValueError
        public, private = fields.string(), fields.string()
        return _Container(cipher, derivation, options, public, Fields(public).text(), private, tag=fields.rest)
    except ValueError:
        raise KeyFileError("the file is damaged") from None


def _openssh_key(container: _Container, passphrase: bytes | None) -> paramiko.PKey:
    if container.kind == "ssh-dss":
        raise _unsupported_type(container.kind)
    private = container.private
    if container.cipher != "none":
        cipher = _CIPHERS.get(container.cipher)
        if cipher is None or container.derivation != "bcrypt":
            raise KeyFileError(f"its encryption {container.cipher}, {container.derivation} is not supported")
        if passphrase is None:
            raise KeyLockedError("it is encrypted")
        private = _decrypted(container, cipher, passphrase)
    # The file again, without encryption.
    words = [string(b"none"), string(b"none"), string(b""), struct.pack(">I", 1)]
    plain = _MAGIC + b"".join([*words, string(container.public), string(private)])
    text = b"\n".join([_BEGIN, base64.b64encode(plain), _END, b""])
    try:
        return _paramiko_key(load_ssh_private_key(text, None))
    except UnsupportedAlgorithm:
        raise _unsupported_type(container.kind) from None
    except ValueError:
        raise KeyFileError("the file is damaged") from None


def _decrypted(container: _Container, cipher: _KeyCipher, passphrase: bytes) -> bytes:
    """Decrypt the private part. Raises WrongPassphraseError if its two equal numbers or its tag are not right."""
    try:
        options = Fields(container.options)
        salt, rounds = options.string(), options.number(4)
        size = cipher.key_bytes + cipher.vector_bytes
        secret = bcrypt.kdf(passphrase, salt, size, rounds, ignore_few_rounds=True)
        key, vector = secret[: cipher.key_bytes], secret[cipher.key_bytes :]
        private = cipher.decrypt(key, vector, container.private, container.tag)
    except (InvalidTag, InvalidSignature):
        raise WrongPassphraseError("wrong passphrase") from None
    except ValueError:
        raise KeyFileError("the file is damaged") from None
    if private[:4] != private[4:8]:
        raise WrongPassphraseError("wrong passphrase")
    return private


def _pem_key(data: bytes, passphrase: bytes | None) -> paramiko.PKey:
    try:
        return _paramiko_key(load_pem_private_key(data, passphrase))
    except TypeError:  # the file is encrypted: a passphrase is only passed after a KeyLockedError
        raise KeyLockedError("it is encrypted") from None
    except UnsupportedAlgorithm:
        raise KeyFileError(_UNKNOWN_FORMAT) from None
    except ValueError as error:
        if passphrase is None:
            raise KeyFileError(_UNKNOWN_FORMAT) from None
        if "nknown" in str(error):  # "Key encrypted with unknown cipher.", "Unknown key encryption algorithm: …"
            raise KeyFileError("its encryption is not supported; `ssh-keygen -p` replaces it") from None
        raise WrongPassphraseError("wrong passphrase") from None


def _paramiko_key(key: object) -> paramiko.PKey:
    """Convert a key of `cryptography`. Raises KeyFileError for types that SSH does not have."""
    match key:
        case RSAPrivateKey():
            return paramiko.RSAKey(key=key)
        case EllipticCurvePrivateKey() if key.curve.name in ("secp256r1", "secp384r1", "secp521r1"):
            return paramiko.ECDSAKey(vals=(key, key.public_key()))
        case Ed25519PrivateKey():
            pem = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            return paramiko.Ed25519Key(file_obj=io.StringIO(pem.decode()))
    raise _unsupported_type(type(key).__name__.removesuffix("PrivateKey"))


def _unsupported_type(kind: str) -> KeyFileError:
    return KeyFileError(f"keys of the type {kind} are not supported")


_Decrypt = Callable[[bytes, bytes, bytes, bytes], bytes]
"""Decrypts, from key, vector, encrypted bytes and tag. Raises InvalidTag, InvalidSignature or ValueError."""


class _KeyCipher(NamedTuple):
    key_bytes: int
    vector_bytes: int
    decrypt: _Decrypt


def _block_cipher(algorithm: Callable[[bytes], CipherAlgorithm], mode: type[modes.CBC | modes.CTR]) -> _Decrypt:
    def decrypt(key: bytes, vector: bytes, data: bytes, _tag: bytes) -> bytes:
        decryptor = Cipher(algorithm(key), mode(vector)).decryptor()
        return decryptor.update(data) + decryptor.finalize()

    return decrypt


def _aes_gcm(key: bytes, vector: bytes, data: bytes, tag: bytes) -> bytes:
    decryptor = Cipher(AES(key), modes.GCM(vector, tag)).decryptor()
    return decryptor.update(data) + decryptor.finalize()


def _chacha20_poly1305(key: bytes, _vector: bytes, data: bytes, tag: bytes) -> bytes:
    """Decrypt as chacha20-poly1305@openssh.com does for packet number 0; a file needs the first 32 bytes of the key."""

    def stream(counter: int, text: bytes) -> bytes:
        nonce = struct.pack("<Q8x", counter)
        return Cipher(ChaCha20(key[:32], nonce), None).decryptor().update(text)

    Poly1305.verify_tag(stream(0, bytes(32)), data, tag)
    return stream(1, data)


_AES_CBC, _AES_CTR = _block_cipher(AES, modes.CBC), _block_cipher(AES, modes.CTR)
_CIPHERS = {
    "3des-cbc": _KeyCipher(24, 8, _block_cipher(TripleDES, modes.CBC)),
    **{f"aes{bits}-cbc": _KeyCipher(bits // 8, 16, _AES_CBC) for bits in (128, 192, 256)},
    **{f"aes{bits}-ctr": _KeyCipher(bits // 8, 16, _AES_CTR) for bits in (128, 192, 256)},
    **{f"aes{bits}-gcm@openssh.com": _KeyCipher(bits // 8, 12, _aes_gcm) for bits in (128, 256)},
    "chacha20-poly1305@openssh.com": _KeyCipher(64, 0, _chacha20_poly1305),
}
"""Ciphers that `ssh-keygen -Z` offers."""
