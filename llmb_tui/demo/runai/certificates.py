"""A certificate authority of the site's own, and a certificate of its server; made at each start."""

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

_DAYS = 30


def make(folder: Path) -> ssl.SSLContext:
    """Write `ca.pem`, which clients are to trust, and `server.pem` into the folder. Answers with a server's context."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = _name("llmb-tui demo, simulated")
    authority = _builder(authority_name, authority_name, authority_key.public_key())
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    authority = authority.add_extension(usage, critical=True)
    authority = authority.add_extension(_own_id(authority_key), critical=False)
    server = _builder(_name("simulated Run:ai"), authority_name, key.public_key())
    names = [x509.IPAddress(ipaddress.ip_address(HOST)), x509.DNSName("localhost")]
    server = server.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    server = server.add_extension(signer, critical=False)
    server = server.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)

    def pem(builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.pem").write_bytes(pem(authority))
    path = folder / "server.pem"
    path.touch(mode=0o600)
    path.write_bytes(private + pem(server))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _own_id(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
    return builder.not_valid_after(now + datetime.timedelta(days=_DAYS))
