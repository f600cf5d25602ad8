"""Certificate authority and server certificate of the site, made at each start."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from llmb_tui.demo.runai.https import HOST

_LASTS = datetime.timedelta(days=30)
_AUTHORITY = "llmb-tui demo, simulated"


def make(folder: Path) -> ssl.SSLContext:
    """Write `ca.pem`, which clients should trust, and `server.pem` into the folder. Returns the server's context."""
    signer, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    own_id = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST)), x509.DNSName("localhost")])
    their_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    authority = _pem(signer, _AUTHORITY, signer, x509.BasicConstraints(ca=True, path_length=0), usage, own_id)
    server = _pem(signer, "simulated Run:ai", key, x509.BasicConstraints(ca=False, path_length=None), names, their_id)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.pem").write_bytes(authority)
    path = folder / "server.pem"
    path.touch(mode=0o600)
    path.write_bytes(private + server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def _pem(
    signer: ec.EllipticCurvePrivateKey, name: str, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
) -> bytes:
    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, _AUTHORITY))
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + _LASTS)
    for extension in extensions:
        critical = isinstance(extension, (x509.BasicConstraints, x509.KeyUsage))
        builder = builder.add_extension(extension, critical)
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
