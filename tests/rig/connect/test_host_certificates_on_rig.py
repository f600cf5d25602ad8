"""Host certificates of real servers: the program accepts one exactly if `ssh` does, and gives the reason if not."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import HostKeyChangedError, HostKeyUnknownError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import Person
from tests.rig.cluster import Rig
from tests.rig.connect.servers import with_options
from tests.rig.sshd import make_key


class Site:
    """A login node whose host key an authority has signed."""

    def __init__(self, rig: Rig, directory: Path) -> None:
        self.rig = rig
        self.directory = directory
        self.known_hosts = directory / "known_hosts"
        self.config = rig.client.config
        self.place = f"[127.0.0.1]:{rig.port('login')}"
        for kind in ("ed25519", "rsa", "ecdsa"):
            make_key(directory / f"authority_{kind}", kind)
        make_key(directory / "other", "ed25519")

    def public(self, name: str) -> str:
        return (self.directory / f"{name}.pub").read_text().strip()

    def host_key(self, kind: str = "ed25519") -> str:
        return (self.rig.directory / "ssh" / f"host_{kind}.pub").read_text().strip()

    def certificate(self, *options: str, by: str = "authority_ed25519", kind: str = "ed25519") -> str:
        """Sign the host key as `ssh-keygen -s` does; the line of sshd's configuration with the certificate."""
        key = self.rig.directory / "ssh" / f"signed_{kind}.pub"
        key.write_text(self.host_key(kind) + "\n")
        command = ["ssh-keygen", "-q", "-s", str(self.directory / by), "-I", "login node", *options, str(key)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        return f"HostCertificate {self.rig.directory}/ssh/signed_{kind}-cert.pub"

    def accepted_by_ssh(self) -> bool:
        options = {"UserKnownHostsFile": self.known_hosts, "StrictHostKeyChecking": "yes", "BatchMode": "yes"}
        command = ["ssh", "-F", str(self.config), *(f"-o{key}={value}" for key, value in options.items())]
        result = subprocess.run(
            [*command, "login", "true"], check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=30
        )
        assert result.returncode in (0, 255), result.stderr
        return result.returncode == 0

    def error(self, person: Person | None = None) -> LlmbError | None:
        """Error of a login with the site's known hosts; None if it succeeds."""
        profile = replace(self.rig.profile(), ssh_config=str(self.config), known_hosts=str(self.known_hosts))
        try:
            connect(profile, person or NonInteractivePrompter()).close()
        except LlmbError as error:
            return error
        return None


@pytest.fixture
def site(login: Rig, tmp_path: Path) -> Site:
    return Site(login, tmp_path)


@pytest.mark.parametrize("names", ["{place}", "127.0.0.1", "*", "*.example,[127.0.0.*"])
@pytest.mark.parametrize("principals", [("-n", "127.0.0.1"), ("-n", "login,127.0.0.1"), ()])
def test_a_valid_certificate_makes_the_host_known(site: Site, names: str, principals: tuple[str, ...]) -> None:
    site.known_hosts.write_text(
        f"@cert-authority {names.format(place=site.place)} {site.public('authority_ed25519')}\n"
    )
    before = site.known_hosts.read_text()
    with with_options(site.rig, "login", site.certificate("-h", *principals)):
        assert site.accepted_by_ssh()
        assert site.error() is None
    assert site.known_hosts.read_text() == before


@pytest.mark.parametrize("by", ["ed25519", "rsa", "ecdsa"])
@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_every_type_of_key_is_accepted(site: Site, kind: str, by: str) -> None:
    site.known_hosts.write_text(f"@cert-authority * {site.public(f'authority_{by}')}\n")
    certificate = site.certificate("-h", by=f"authority_{by}", kind=kind)
    algorithms = {"rsa": "rsa-sha2-512-cert-v01@openssh.com", "ed25519": "ssh-ed25519-cert-v01@openssh.com"}
    with with_options(site.rig, "login", certificate, f"HostKeyAlgorithms {algorithms[kind]}"):
        assert site.accepted_by_ssh()
        assert site.error() is None


@pytest.mark.parametrize(
    ("options", "by", "reason"),
    [
        (("-h", "-V", "20200101:20200102"), "authority_ed25519", "certificate expired on "),
        (("-h", "-V", "20900101:20910101"), "authority_ed25519", "certificate is not valid before "),
        (("-h", "-n", "login.example,eos"), "authority_ed25519", "certificate is for other names: login.example, eos."),
        (("-h", "-n", "*"), "authority_ed25519", "certificate is for other names: *."),
        (("-n", "127.0.0.1"), "authority_ed25519", "certificate is not for a host."),
        (("-h",), "other", "certificate is signed by another authority: ssh-ed25519 SHA256:"),
        (("-h", "-t", "ssh-rsa"), "authority_rsa", "certificate is signed with SHA-1"),
        (None, "", "the host showed no certificate."),
    ],
)
def test_any_other_certificate_leaves_the_host_unknown_with_the_reason(
    site: Site, options: tuple[str, ...] | None, by: str, reason: str
) -> None:
    authorities = (f"@cert-authority * {site.public(f'authority_{kind}')}\n" for kind in ("ed25519", "rsa"))
    site.known_hosts.write_text("".join(authorities))
    with with_options(site.rig, "login", *([] if options is None else [site.certificate(*options, by=by)])):
        assert not site.accepted_by_ssh()
        error, person = site.error(), Person()
        site.error(person)
    assert isinstance(error, HostKeyUnknownError)
    assert f"{site.known_hosts} trusts an authority for this host, but the" in error.why
    assert reason in error.why
    assert len(person.notes) == 1
    assert reason in person.notes[0]


def test_a_key_in_the_file_is_accepted_whatever_its_certificate(site: Site) -> None:
    lines = [f"@cert-authority * {site.public('authority_ed25519')}", f"{site.place} {site.host_key()}", ""]
    site.known_hosts.write_text("\n".join(lines))
    with with_options(site.rig, "login", site.certificate("-h", "-V", "20200101:20200102")):
        assert site.accepted_by_ssh()
        assert site.error() is None


@pytest.mark.parametrize("revoked", ["authority", "host"])
def test_a_revoked_authority_or_key_is_refused_without_a_question(site: Site, revoked: str) -> None:
    authority, person = site.public("authority_ed25519"), Person(accepts=True)
    key = authority if revoked == "authority" else site.host_key()
    site.known_hosts.write_text(f"@cert-authority * {authority}\n{site.place} {site.host_key()}\n@revoked * {key}\n")
    with with_options(site.rig, "login", site.certificate("-h")):
        assert not site.accepted_by_ssh()
        error = site.error(person)
    assert isinstance(error, HostKeyChangedError)
    assert "is revoked" in error.what
    assert ("authority" in error.what) is (revoked == "authority")
    assert person.host_keys == []


def test_an_authority_of_another_host_proves_nothing(site: Site) -> None:
    site.known_hosts.write_text(f"@cert-authority *.example {site.public('authority_ed25519')}\n")
    with with_options(site.rig, "login", site.certificate("-h")):
        assert not site.accepted_by_ssh()
        error = site.error()
    assert isinstance(error, HostKeyUnknownError)
    assert "trusts an authority" not in error.why


def test_an_authority_for_the_name_counts_as_well_as_one_for_the_port(site: Site) -> None:
    lines = [f"@cert-authority {site.place} {site.public('other')}"]
    lines += [f"@cert-authority 127.0.0.1 {site.public('authority_ed25519')}", ""]
    site.known_hosts.write_text("\n".join(lines))
    with with_options(site.rig, "login", site.certificate("-h")):
        assert site.accepted_by_ssh()
        assert site.error() is None


@pytest.mark.parametrize("form", ["text", "list", "list of serial numbers"])
@pytest.mark.parametrize("revokes", ["authority", "host", "other"])
def test_a_file_of_revoked_keys_is_respected_as_by_ssh(site: Site, form: str, revokes: str) -> None:
    keys = {"authority": site.public("authority_ed25519"), "host": site.host_key(), "other": site.public("other")}
    revoked, named = site.directory / "revoked", site.directory / "named"
    named.write_text(f"# comment\n{keys[revokes]}\n" if form == "text" else f"{keys[revokes]}\n")
    keygen = ["ssh-keygen", "-q", "-k", "-f", str(revoked)]
    if form == "text":
        named.rename(revoked)
    elif form == "list":
        subprocess.run([*keygen, str(named)], check=True)
    else:
        named.write_text(f"serial: {4 if revokes == 'other' else 5}\n")
        subprocess.run([*keygen, "-s", str(site.directory / "authority_ed25519.pub"), str(named)], check=True)
    site.config = site.directory / "config"
    site.config.write_text(f"RevokedHostKeys {revoked}\nInclude {site.rig.client.config}\n")
    site.known_hosts.write_text(f"@cert-authority * {site.public('authority_ed25519')}\n")
    with with_options(site.rig, "login", site.certificate("-h", "-z", "5")):
        error = site.error(Person(accepts=True))
        assert site.accepted_by_ssh() is (revokes == "other")
    assert (error is None) is (revokes == "other")
    assert error is None or (isinstance(error, HostKeyChangedError) and str(revoked) in error.why)


@pytest.mark.parametrize("content", [None, b"SSHKRL\n\0broken"])
def test_no_host_is_trusted_if_the_revoked_keys_cannot_be_read(site: Site, content: bytes | None) -> None:
    revoked = site.directory / "revoked"
    if content is not None:
        revoked.write_bytes(content)
    site.config = site.directory / "config"
    site.config.write_text(f"RevokedHostKeys {revoked}\nInclude {site.rig.client.config}\n")
    site.known_hosts.write_text(f"{site.place} {site.host_key()}\n")
    assert not site.accepted_by_ssh()
    error = site.error()
    assert error is not None
    assert str(revoked) in error.what
