from __future__ import annotations

import base64
import contextlib
import os
import pty
import random
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from llmb_tui.cluster.failures import DeadlineError, DisconnectedError
from llmb_tui.cluster.remote_file import Sample, UnreadableFileError, cksum
from llmb_tui.cluster.runai import kube, pod_log
from llmb_tui.cluster.runai.failures import ApiError
from llmb_tui.cluster.runai.kube import Kube, KubeconfigError
from llmb_tui.cluster.runai.pod_log import PodLog, end_of
from llmb_tui.cluster.runai.secret import VARIABLE
from llmb_tui.errors import LlmbError
from llmb_tui.watch.follow import Follower, LogReplacedError
from tests.cluster.runai.https_site import Request, Say, Site
from tests.kit.waiting import until

TOKEN = "canary-of-the-kubeconfig"
AT_A_TERMINAL = """
import fcntl, os, select, sys, termios
from llmb_tui.cluster.runai.kube import KubeconfigError, Kube
terminal = int(sys.argv[1])
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
try:
    Kube(sys.argv[2]).open("/x")
except KubeconfigError as error:
    print(error.why)
print(os.read(terminal, 9) if select.select([terminal], [], [], 0)[0] else "nothing is left")
"""
LINES = b"".join(b"iteration %d | lm loss %d.5 | step time 1.2%d\n" % (n, n, n) for n in range(4000))


class Pods:
    """A Kubernetes with the log of one pod; a test extends, rotates and cuts the log."""

    def __init__(self, site: Site) -> None:
        self.data = b""
        """All output of the container."""
        self.gone = 0
        """Number of bytes that the node has rotated away."""
        self.comes: list[bytes] = []
        """Pieces that the container prints during a following read."""
        self.cuts: list[int] = []
        """Number of bytes after which each of the next answers is cut."""
        self.ended = False
        self.refusals: list[Say] = []
        self.changed = threading.Condition()
        self.queries: list[dict[str, str]] = []
        site.respond = self._respond
        self._stopping = site.stopping

    def _respond(self, request: Request) -> Say:
        assert request.path == "/api/v1/namespaces/runai-bench/pods/x-master-0/log"
        if request.headers["authorization"] != f"Bearer {TOKEN}":
            return Say(401)
        if self.refusals:
            return self.refusals.pop(0)
        self.queries.append(request.query)
        cut_after = self.cuts.pop(0) if self.cuts else None
        if "follow" in request.query:
            return Say(chunks=self._followed(), cut_after=cut_after)
        return Say(body=self.data[self.gone :], cut_after=cut_after)

    def _followed(self) -> Iterator[bytes]:
        at = self.gone
        yield b""  # the head of the answer, before the container prints anything
        while True:
            with self.changed:
                if at == len(self.data):
                    if self.comes:
                        self.data += self.comes.pop(0)
                    elif self.ended or self._stopping.is_set():
                        return
                    else:
                        self.changed.wait(0.02)
                piece, at = self.data[at:], len(self.data)
            if piece:
                yield piece


def configured(site: Site, path: Path) -> Path:
    server = {"server": site.url.removesuffix("/api/v1"), "certificate-authority": str(site.ca_file)}
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def log_of(kubeconfig: Path) -> PodLog:
    return PodLog(Kube(str(kubeconfig)), "runai-bench", "x-master-0", "pytorch")


@pytest.fixture
def kubeconfig(site: Site, tmp_path: Path) -> Path:
    return configured(site, tmp_path / "config")


@pytest.fixture
def pods(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pods]:
    monkeypatch.setattr(pod_log, "QUIET_S", 0.3)
    pods = Pods(site)
    yield pods
    pods.ended = True


@pytest.fixture
def log(kubeconfig: Path) -> PodLog:
    return log_of(kubeconfig)


def follow(log: PodLog, local: Path, until: bytes, *, most: int = 4000) -> None:
    """Copy until the copy equals `until`, despite every break."""
    follower = Follower(log, local)
    try:
        for _ in range(most):
            with contextlib.suppress(DisconnectedError):
                follower.copy_available(0.05)
            follower.retry_soon()
            copied = local.read_bytes()
            assert until.startswith(copied), "the copy has a byte too few or too many"
            if copied == until:
                return
    finally:
        follower.close()
    raise AssertionError(f"{len(copied)} of {len(until)} bytes came")


def test_it_copies_present_and_new_bytes(pods: Pods, log: PodLog, tmp_path: Path) -> None:
    pods.data, pods.comes = LINES[:1000], [LINES[1000:1001], LINES[1001:5000], b"no newline"]
    follow(log, tmp_path / "log", LINES[:5000] + b"no newline")
    assert pods.queries == [{"container": "pytorch", "follow": "true"}]


def test_another_program_continues_at_the_last_byte(pods: Pods, log: PodLog, tmp_path: Path) -> None:
    pods.data = LINES[:100_000]
    follow(log, tmp_path / "log", LINES[:100_000])
    pods.comes = [LINES[100_000:]]
    follow(log, tmp_path / "log", LINES)


@settings(max_examples=25)
@given(st.data())
def test_cut_anywhere_the_copy_is_the_log(
    served: Site, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    draw = data.draw
    folder = tmp_path_factory.mktemp("log")
    pods = Pods(served)
    whole = draw(st.sampled_from([LINES, random.Random(7).randbytes(150_000), b"same\n" * 30_000]))
    places = sorted(draw(st.lists(st.integers(0, len(whole)), min_size=1, max_size=8)))
    pods.data = whole[: places[0]]
    pods.comes = [whole[a:b] for a, b in zip(places, [*places[1:], len(whole)], strict=True)]
    pods.cuts = draw(st.lists(st.integers(0, len(whole) + 400), max_size=6))
    pods.ended = True
    follow(log_of(configured(served, folder / "config")), folder / "copy", whole)


def test_a_log_that_was_rotated_is_found_again_by_its_end(pods: Pods, log: PodLog, tmp_path: Path) -> None:
    """Also by a program that has not read its beginning."""
    pods.data = LINES[:120_000]
    follow(log, tmp_path / "log", LINES[:120_000])
    pods.gone, pods.comes = 119_000, [LINES[120_000:]]
    follow(log, tmp_path / "log", LINES)
    pods.gone = len(LINES) - 90_000
    with contextlib.closing(Follower(log, tmp_path / "log")) as follower:
        assert follower.behind() == 0
        pods.data += b"more"
        assert follower.behind() == 4
    follow(log, tmp_path / "log", LINES + b"more")


def test_bytes_rotated_before_the_copy_are_a_gap(pods: Pods, log: PodLog, tmp_path: Path) -> None:
    pods.data = LINES[:120_000]
    follow(log, tmp_path / "log", LINES[:120_000])
    pods.data, pods.gone = LINES, 125_000
    with contextlib.closing(Follower(log, tmp_path / "log")) as follower:
        with pytest.raises(LogReplacedError, match="was replaced"):
            follower.copy_available(0.1)
        with pytest.raises(LogReplacedError):
            follower.behind()


def test_another_pod_of_the_name_has_another_log(pods: Pods, log: PodLog, tmp_path: Path) -> None:
    pods.data = LINES[:3000]
    follow(log, tmp_path / "log", LINES[:3000])
    for data in (b"begins anew\n" * 5, b"begins anew\n" * 5000):
        pods.data = data
        with contextlib.closing(Follower(log, tmp_path / "log")) as follower, pytest.raises(LogReplacedError):
            follower.copy_available(0.1)


@pytest.mark.parametrize(
    "say", [Say(404, {"message": "pods not found"}), Say(400, {"message": "container is waiting to start"})]
)
def test_a_pod_that_has_no_log_yet_is_waited_for(pods: Pods, log: PodLog, tmp_path: Path, say: Say) -> None:
    pods.refusals, pods.data = [say], b"hello"
    assert log.prove(Sample(0, 0, 0), b"") is None
    pods.refusals = [say]
    follow(log, tmp_path / "log", b"hello")


def test_a_missing_log_is_reported_and_the_copy_is_kept(pods: Pods, log: PodLog, tmp_path: Path) -> None:
    pods.data = LINES[:3000]
    follow(log, tmp_path / "log", LINES[:3000])
    pods.ended = True
    for pods.data in (b"", b"unable to retrieve container logs for containerd://1f"):
        with contextlib.closing(Follower(log, tmp_path / "log")) as follower:
            with pytest.raises(LlmbError, match="is gone"):
                follower.copy_available(0.1)
            with pytest.raises(LlmbError, match="is gone"):
                follower.behind()
    assert (tmp_path / "log").read_bytes() == LINES[:3000]


def test_a_missing_permission_is_named_in_the_remedy(pods: Pods, log: PodLog) -> None:
    pods.refusals = [Say(403, {"message": 'pods "x" is forbidden: User "me" cannot get resource "pods/log"'})]
    with pytest.raises(ApiError, match="read the log of runai-bench/x-master-0") as caught:
        log.tail(Sample(0, 0, 0), 0, b"")
    assert "pods/log" in caught.value.why
    assert "`get` `pods/log`" in caught.value.fix


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_not_followed_and_its_remedy_is_about_the_kubeconfig(
    pods: Pods, log: PodLog, status: int
) -> None:
    pods.refusals = [Say(status, headers={"Location": "https://elsewhere.example/\x1b]52;c;eA==\x07"})]
    with pytest.raises(ApiError, match="redirects to another address") as caught:
        log.prove(Sample(0, 0, 0), b"")
    assert caught.value.why == f"It answered: https://elsewhere.example/ (HTTP {status})"
    assert "`server` in the kubeconfig" in caught.value.fix


def test_a_refusal_that_arrives_byte_by_byte_is_read_for_a_limited_time(pods: Pods, log: PodLog) -> None:
    """Each byte comes in time, but all of them would take hours."""
    pods.refusals = [Say(500, b"x" * 60_000, slowly=True)]
    with pytest.raises(ApiError, match="failed to read the log"):
        log.prove(Sample(0, 0, 0), b"")


def test_the_known_part_of_a_rotated_log_is_awaited_for_a_limited_time(
    pods: Pods, log: PodLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, but all of them would take days."""
    pods.data, pods.gone = LINES[:90_000], 60_000
    known = LINES[20_000:80_000]
    sample = Sample(60_000, 20_000, 60_000)
    answers = [Say(chunks=iter([LINES[60_000:90_000]])), Say(body=LINES[60_000:90_000])]
    dripping = Say(body=LINES[60_000:90_000], slowly=True)
    pods.refusals = [*answers, dripping]
    monkeypatch.setattr(pod_log, "WITHIN_S", 0.5)
    with pytest.raises(DeadlineError, match="cannot be read"):
        log.tail(sample, 80_000, known)


def test_a_proof_is_that_of_the_bytes(pods: Pods, log: PodLog) -> None:
    pods.data = LINES
    proof = log.prove(Sample(10, 50, 20), LINES[50:70])
    assert proof is not None
    assert (proof.size, proof.checksum) == (len(LINES), cksum(LINES[:10] + LINES[50:70]))


KNOWN = b"".join(b"line %d\n" % n for n in range(100))


@pytest.mark.parametrize(
    ("log_now", "place"),
    [
        (KNOWN + b"new", len(KNOWN)),
        (b"before\n" + KNOWN + b"new", len(KNOWN) + 7),
        (KNOWN[300:] + b"new", len(KNOWN) - 300),
        (KNOWN[-40:], 40),
        (KNOWN[-10:], None),
        (b"quite another log that is long enough\n" * 9, None),
        (KNOWN + KNOWN, None),
        (b"", None),
    ],
)
def test_the_end_of_the_copied_bytes_is_found_in_the_log(log_now: bytes, place: int | None) -> None:
    assert end_of(KNOWN, log_now) == place


def test_a_place_that_is_not_certain_is_none() -> None:
    assert end_of(b"same\n" * 100, b"same\n" * 50) is None


def test_a_cut_log_without_a_length_is_not_taken_as_complete(site: Site, kubeconfig: Path) -> None:
    site.respond = lambda _: Say(body=LINES[:1000], until_closed=True, cut_after=600)
    with contextlib.closing(Kube(str(kubeconfig)).open("/x")) as reply, pytest.raises(DisconnectedError, match="broke"):
        list(iter(lambda: reply.read(5.0), b""))


class TestKubeconfig:
    def change(self, path: Path, **user: object) -> dict[str, object]:
        config = yaml.safe_load(path.read_text())
        config["users"][0]["user"] = user
        path.write_text(yaml.safe_dump(config))
        return dict(config)

    def test_a_token_from_a_file_is_read_each_time(self, pods: Pods, kubeconfig: Path, tmp_path: Path) -> None:
        self.change(kubeconfig, tokenFile="token")
        (tmp_path / "token").write_text("old")
        log = log_of(kubeconfig)
        with pytest.raises(UnreadableFileError, match="does not accept the login"):
            log.prove(Sample(0, 0, 0), b"")
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        pods.data = b"x"
        assert log.prove(Sample(0, 0, 0), b"") is not None

    def test_a_token_that_is_renewed_in_the_file(self, pods: Pods, kubeconfig: Path) -> None:
        self.change(kubeconfig, token="old")
        log = log_of(kubeconfig)
        self.change(kubeconfig, token=TOKEN)
        pods.data = b"x"
        assert log.prove(Sample(0, 0, 0), b"") is not None

    def test_a_key_with_a_passphrase_does_not_prompt(self, site: Site, kubeconfig: Path, tmp_path: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        locked = serialization.BestAvailableEncryption(b"open sesame")
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        (tmp_path / "key").write_bytes(pem)
        self.change(kubeconfig, **{"client-certificate": str(site.ca_file), "client-key": "key"})
        with pytest.raises(LlmbError, match="cannot be used") as caught:
            Kube(str(kubeconfig)).open("/x")
        assert caught.value.why == "A certificate or key in it is invalid: SSLError."

    def test_a_plugin_runs_again_when_its_token_is_refused(self, pods: Pods, kubeconfig: Path, tmp_path: Path) -> None:
        plugin = tmp_path / "plugin"
        plugin.write_text(
            "#!/bin/sh\n"
            f'test "$1 $2" = "get token" && test "$OF" = it || exit 9\n'
            "case $KUBERNETES_EXEC_INFO in *'\"interactive\": false'*) ;; *) exit 8 ;; esac\n"
            f'test -e "{tmp_path}/asked" && token={TOKEN}; : > "{tmp_path}/asked"\n'
            'echo "{\\"kind\\": \\"ExecCredential\\", \\"status\\": {\\"token\\": \\"${token:-old}\\"}}"\n'
        )
        plugin.chmod(0o755)
        spec = {"command": "./plugin", "args": ["get", "token"], "env": [{"name": "OF", "value": "it"}]}
        self.change(kubeconfig, exec=spec)
        pods.data = b"x"
        assert log_of(kubeconfig).prove(Sample(0, 0, 0), b"")

    def test_a_plugin_cannot_read_from_the_terminal(self, kubeconfig: Path) -> None:
        spec = {"command": "sh", "args": ["-c", 'read x </dev/tty && echo "{\\"status\\": {\\"token\\": \\"$x\\"}}"']}
        self.change(kubeconfig, exec=spec)
        keys, terminal = pty.openpty()
        os.write(keys, b"y\n")
        try:
            done = subprocess.run(
                [sys.executable, "-c", AT_A_TERMINAL, str(terminal), str(kubeconfig)],
                pass_fds=(terminal,),
                start_new_session=True,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        finally:
            os.close(keys)
            os.close(terminal)
        assert "gave no login" in done
        assert done.endswith("b'y\\n'\n")

    def test_a_hanging_plugin_is_ended_with_its_child_processes(
        self, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started, ended = tmp_path / "started", tmp_path / "ended"
        os.mkfifo(ended)
        script = f'(exec 3>"{ended}"; : >"{started}"; exec sleep 600) & wait'
        self.change(kubeconfig, exec={"command": "sh", "args": ["-c", script]})
        wait = subprocess.Popen.wait

        def first_wait(self: subprocess.Popen[bytes], timeout: float | None = None) -> int:
            if timeout is not None:
                until(started.exists)
            return wait(self, timeout)

        with os.fdopen(os.open(ended, os.O_RDONLY | os.O_NONBLOCK), "rb") as held:
            monkeypatch.setattr(subprocess.Popen, "wait", first_wait)
            monkeypatch.setattr(kube, "PLUGIN_S", 0.0)
            with pytest.raises(KubeconfigError) as caught:
                Kube(str(kubeconfig)).open("/x")
            assert "gave no login within" in caught.value.why
            until(lambda: held.read() == b"", "the last one that could write there to end")

    @pytest.mark.parametrize(
        ("script", "why", "fix"),
        [
            ("head -c 500000 /dev/zero | tr '\\0' '['", "its output has no credentials in", "Start it"),
            ("printf 'a\\0b\\377'", "its output has no credentials in", "Start it"),
            ("exec cat /dev/zero", "it printed more than 1.05 MB", "Start it"),
            ("printf '\\033]52;c;eA==\\a\\033[2Jno \\342\\200\\256way\\n' >&2; exit 3", "no \ufffdway", "Log in"),
            ("head -c 3000000 /dev/zero >&2; echo end >&2; exit 1", "\ufffd", "Log in"),
            (f"echo secret=${VARIABLE} >&2; exit 1", "secret=", "Log in"),
            ("kill -9 $$", "exit code -9", "Log in"),
        ],
        ids=["deep JSON", "garbage", "endless output", "escapes", "long message", "our secret", "killed"],
    )  # fmt: skip
    def test_a_hostile_plugin_is_ended_and_its_words_are_clean_and_short(
        self, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str, fix: str
    ) -> None:
        monkeypatch.setenv(VARIABLE, "canary")
        self.change(kubeconfig, exec={"command": "sh", "args": ["-c", script]})
        with pytest.raises(KubeconfigError) as caught:
            Kube(str(kubeconfig)).open("/x")
        words = caught.value.why
        assert words.startswith(f"The program sh gave no login: {why}")
        assert len(words) < 250
        assert caught.value.fix.startswith(fix)

    def test_a_child_process_that_a_plugin_leaves_behind_is_neither_awaited_nor_read(
        self, pods: Pods, kubeconfig: Path, tmp_path: Path
    ) -> None:
        """The child process prints without end as soon as the plugin has ended; without a reader it ends."""
        ended = tmp_path / "ended"
        os.mkfifo(ended)
        child = f'exec 3>"{ended}"; while kill -0 $$; do :; done; exec cat /dev/zero'
        answer = f'{{"status": {{"token": "{TOKEN}"}}}}'
        script = f"({child}) & echo '{answer}'"
        with os.fdopen(os.open(ended, os.O_RDONLY | os.O_NONBLOCK), "rb") as held:
            self.change(kubeconfig, exec={"command": "sh", "args": ["-c", script]})
            pods.data = b"x"
            assert log_of(kubeconfig).prove(Sample(0, 0, 0), b"")
            until(lambda: held.read() == b"", "the child process to end")

    @pytest.mark.parametrize(
        ("command", "why"),
        [
            ("./missing", "cannot be started"),
            ("false", "exit code 1"),
            ("true", "its output has no credentials"),
            ("echo 'refused: token=canary7Qz93817' >&2; exit 1", "gave no login: refused: token=[hidden]."),
        ],
    )
    def test_a_plugin_without_a_token_raises_an_error_with_the_reason(
        self, kubeconfig: Path, command: str, why: str
    ) -> None:
        shell = {"command": "sh", "args": ["-c", command]} if " " in command else {"command": command}
        self.change(kubeconfig, exec={**shell, "installHint": "apt install it"})
        with pytest.raises(LlmbError, match="kubeconfig") as caught:
            Kube(str(kubeconfig)).open("/x")
        assert why in caught.value.why

    def test_a_client_certificate(
        self, pods: Pods, site: Site, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pem = (site.ca_file.parent / "server.pem").read_text()
        key = pem[pem.index("-----BEGIN PRIVATE") :]
        encoded = {"client-certificate-data": pem.removesuffix(key), "client-key-data": key}
        user = {name: base64.b64encode(value.encode()).decode() for name, value in encoded.items()}
        self.change(kubeconfig, **user, token=TOKEN)
        loaded = []
        load = ssl.SSLContext.load_cert_chain

        def note(self: ssl.SSLContext, certfile: str, keyfile: str | None, password: str) -> None:
            loaded.append((Path(certfile), Path(certfile).stat().st_mode & 0o777))
            load(self, certfile, keyfile, password)

        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", note)
        pods.data = b"x"
        assert log_of(kubeconfig).prove(Sample(0, 0, 0), b"")
        ((path, mode),) = loaded
        assert mode == 0o600
        assert not path.exists()

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ("current-context: other", "no context"),
            ("insecure-skip-tls-verify", "disables the check"),
            ("auth-provider", "no longer supports"),
            ("server: http://x", "https"),
            ("not yaml", "YAML"),
        ],
    )
    def test_an_unusable_setting_is_explained(self, kubeconfig: Path, change: str, why: str) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        if change.startswith("current"):
            config["current-context"] = "other"
        elif change.startswith("insecure"):
            config["clusters"][0]["cluster"][change] = True
        elif change.startswith("auth"):
            config["users"][0]["user"] = {change: {"name": "gcp"}}
        else:
            config["clusters"][0]["cluster"]["server"] = "http://x"
        kubeconfig.write_text(f"token: [{TOKEN}" if change == "not yaml" else yaml.safe_dump(config))
        with pytest.raises(LlmbError, match="cannot be used") as caught:
            Kube(str(kubeconfig))
        assert why in caught.value.why
        assert TOKEN not in str(caught.value)

    @pytest.mark.parametrize("text", ["a: !!int ''", "a: !!bool maybe", "a: !!timestamp x", "[" * 3000])
    def test_a_file_that_is_not_yaml_is_reported(self, kubeconfig: Path, text: str) -> None:
        kubeconfig.write_text(text)
        with pytest.raises(KubeconfigError, match="cannot be used") as caught:
            Kube(str(kubeconfig))
        assert caught.value.why == "It is not YAML."

    def test_words_of_a_plugin_that_are_no_list_are_none(self, kubeconfig: Path) -> None:
        self.change(kubeconfig, exec={"command": "/bin/false", "args": 5, "env": 5})
        with pytest.raises(KubeconfigError, match="cannot be used"):
            log_of(kubeconfig).prove(Sample(0, 0, 0), b"")

    @pytest.mark.parametrize(
        ("names", "valid", "trusts", "why", "fix"),
        [
            ("other.example", True, True, "mismatch", "tls-server-name"),
            ("127.0.0.1", True, False, "local issuer certificate", "`certificate-authority`"),
            ("127.0.0.1", False, True, "expired", "clock"),
        ],
        ids=["another name", "another authority", "expired"],
    )
    def test_a_certificate_that_is_not_trusted_has_its_reason_and_a_remedy_of_the_kubeconfig(
        self, site: Site, tmp_path: Path, *, names: str, valid: bool, trusts: bool, why: str, fix: str
    ) -> None:
        logs = Site(tmp_path / "logs", names=[names], valid=valid)
        kubeconfig = configured(logs if trusts else site, tmp_path / "config")
        kubeconfig.write_text(kubeconfig.read_text().replace(f":{site.port}", f":{logs.port}"))
        with contextlib.closing(logs), pytest.raises(UnreadableFileError, match="is not trusted") as caught:
            Kube(str(kubeconfig)).open("/x")
        assert why in caught.value.why
        assert fix in caught.value.fix
        assert "ca_file" not in caught.value.fix
        assert logs.requests == []

    @pytest.mark.parametrize(("proxy", "fix"), [("socks5://127.0.0.1:1", "`proxy-url`"), ("127.0.0.1:1", "the proxy")])
    def test_an_unusable_proxy_of_the_kubeconfig_is_named_as_such(self, kubeconfig: Path, proxy: str, fix: str) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        config["clusters"][0]["cluster"]["proxy-url"] = proxy
        kubeconfig.write_text(yaml.safe_dump(config))
        with pytest.raises(UnreadableFileError, match="through the proxy of the kubeconfig") as caught:
            Kube(str(kubeconfig)).open("/x")
        assert fix in caught.value.fix

    @pytest.mark.parametrize("server", ["https://kube:6443x", "https://kube:65536", "https://[::1", "https://:6443"])
    def test_an_invalid_address_is_reported(self, kubeconfig: Path, server: str) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = server
        kubeconfig.write_text(yaml.safe_dump(config))
        with pytest.raises(KubeconfigError, match="cannot be used") as caught:
            Kube(str(kubeconfig))
        assert caught.value.why == "The address of its server has no host, or an invalid port."

    def test_a_missing_file_is_reported(self, tmp_path: Path) -> None:
        for name in (str(tmp_path / "none"), "~no-such-user/config"):
            with pytest.raises(LlmbError, match="cannot be used") as caught:
                Kube(name)
            assert caught.value.why == "No such file or directory."

    def test_a_file_of_a_user_that_there_is_not(self, kubeconfig: Path) -> None:
        self.change(kubeconfig, tokenFile="~no-such-user/token")
        with pytest.raises(LlmbError, match="cannot be used") as caught:
            log_of(kubeconfig).prove(Sample(0, 0, 0), b"")
        assert "~no-such-user/token" in caught.value.why
