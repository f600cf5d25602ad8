"""`Kube`: requests to the Kubernetes of a kubeconfig, for the logs of pods."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llmb_tui.cluster.failures import NoAnswerError, UnreachableError
from llmb_tui.cluster.remote_file import UnreadableFileError
from llmb_tui.cluster.runai.https import CertificateFault, HttpsServer, Reply, UntrustedError, tls_context
from llmb_tui.cluster.runai.secret import VARIABLE
from llmb_tui.cluster.yaml_text import YamlError, yaml_of
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.quantities import byte_size, duration
from llmb_tui.language.redact import remember_secret, server_words
from llmb_tui.language.text import clean_line, short_line
from llmb_tui.store.paths import expand_user

_WITHIN_S = 20.0
PLUGIN_S = 30.0
"""Time within which an exec plugin must end, seconds."""
_LOOK_EVERY_S = 0.1
_SOON_S = 60.0
_LONGEST_FILE = 1 << 20
_NO_PASSPHRASE = ""
"""Passphrase of a key, so that OpenSSL does not ask for one on the terminal."""
_TRUST: Mapping[CertificateFault, str] = {
    "name": (
        "In the kubeconfig, use a host name of the certificate in `server` of its cluster, or set `tls-server-name` "
        "to it."
    ),
    "authority": (
        "In the kubeconfig, set `certificate-authority` of its cluster to the file of your site's certificates, and "
        "remove `certificate-authority-data`; or ask the administrators for a new kubeconfig."
    ),
}
"""Remedies for a certificate that is not trusted: the profile's own `ca_file` is not used here."""
_LOG_IN = "Log in with it in another terminal first."
_LOOK_AT_IT = "Start it in another terminal and look at its output."


class KubeconfigError(UnreadableFileError):
    """The kubeconfig cannot be read, or has settings that cannot be used, so logs cannot be read. Exit code 1."""

    def __init__(self, path: Path, why: str, fix: str = "Fix the file, or choose another one.") -> None:
        super().__init__(f"The kubeconfig {clean_line(str(path))} cannot be used.", why, fix, exit_code=1)


class Kube:
    """The server and the user of the current context. Credentials are read when they are needed."""

    def __init__(self, path: str) -> None:
        """Raises KubeconfigError."""
        self._path = expand_user(path)
        self._lock = threading.Lock()
        self._login: dict[str, Any] = {}
        """Last credentials of the exec plugin."""
        self._login_until = 0.0
        self._load()

    def open(self, path: str) -> Reply:
        """GET a path; the body is read piece by piece. If the login is refused, log in again once.

        Raises DisconnectedError if the connection breaks. Raises UnreadableFileError if there is no connection or
        answer, because that does not concern the connection to Run:ai.
        """
        for is_retry in (False, True):
            login = self._credentials(renew=is_retry)
            server = HttpsServer(
                self.url,
                self._trust(login),
                proxy=_text(self._cluster, "proxy-url") or None,
                server_name=_text(self._cluster, "tls-server-name"),
            )
            token = self._token(login)
            headers = {"Accept": "*/*"} | ({"Authorization": f"Bearer {token}"} if token else {})
            try:
                reply = server.open("GET", self._prefix + path, headers, ends=time.monotonic() + _WITHIN_S)
            except UntrustedError as error:
                raise UnreadableFileError(error.what, error.why, _TRUST.get(error.fault, error.fix)) from error
            except (UnreachableError, NoAnswerError) as error:
                raise UnreadableFileError(error.what, error.why, error.fix) from error
            if reply.status != 401:
                return reply
            reply.close()
            self._load()  # another program may have written a new login there
        why = f"The login is from {clean_line(str(self._path))}."
        raise UnreadableFileError(f"{server.name} does not accept the login.", why, "Log in to the cluster again.")

    def _load(self) -> None:
        config = self._read()
        context = self._named(config, "context", _text(config, "current-context"))
        self._user = self._named(config, "user", _text(context, "user"))
        self._cluster = self._named(config, "cluster", _text(context, "cluster"))
        self.url = _text(self._cluster, "server")
        if not self.url.startswith("https://"):
            raise KubeconfigError(self._path, "Its server is not an https address.")
        try:
            server = urlsplit(self.url)
            is_address = bool(server.hostname) and server.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise KubeconfigError(self._path, "The address of its server has no host, or an invalid port.")
        self._prefix = server.path.rstrip("/")
        if self._cluster.get("insecure-skip-tls-verify"):
            why = "It disables the check of the server's certificate (`insecure-skip-tls-verify`)."
            raise KubeconfigError(self._path, why, "Add the server's certificates to it, as `certificate-authority`.")
        unknown = [key for key in ("auth-provider", "username") if self._user.get(key)]
        if unknown:
            why = f"It logs in by `{unknown[0]}`, which Kubernetes no longer supports."
            raise KubeconfigError(self._path, why, "Use a token, a client certificate or an exec plugin in it.")

    def _read(self) -> dict[str, Any]:
        try:
            with self._path.open("rb") as file:
                config = yaml_of(file.read(_LONGEST_FILE))
        except OSError as error:
            raise KubeconfigError(self._path, f"{error.strerror}.") from error
        except YamlError:
            raise KubeconfigError(self._path, "It is not YAML.") from None
        if not isinstance(config, dict):
            raise KubeconfigError(self._path, "It contains no settings.")
        return config

    def _named(self, config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
        for entry in _list(config, f"{kind}s"):
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
                return dict(entry[kind])
        raise KubeconfigError(
            self._path,
            f"It has no {kind} named {clean_line(name)}." if name else f"It does not name its current {kind}.",
        )

    def _file(self, name: str) -> Path:
        """Path of a file that the kubeconfig names, perhaps relative to it."""
        return self._path.parent / expand_user(name)

    def _trust(self, login: Mapping[str, Any]) -> ssl.SSLContext:
        data, file = _text(self._cluster, "certificate-authority-data"), _text(self._cluster, "certificate-authority")
        try:
            # If it names certificates, only these are trusted, as in kubectl.
            context = tls_context(self._file(file) if file and not data else None, _decoded(data))
            self._identify(context, login)
        except (ValueError, OSError, ssl.SSLError) as error:
            why = f"A certificate or key in it is invalid: {type(error).__name__}."
            raise KubeconfigError(self._path, why) from None
        return context

    def _identify(self, context: ssl.SSLContext, login: Mapping[str, Any]) -> None:
        """Add the user's certificate, if there is one, to the context. Python only reads it from files."""
        if certificate := _text(login, "clientCertificateData"):
            key: str | None = _text(login, "clientKeyData")
        else:
            certificate = _decoded(_text(self._user, "client-certificate-data")) or ""
            key = _decoded(_text(self._user, "client-key-data"))
        if not certificate:
            if name := _text(self._user, "client-certificate"):
                context.load_cert_chain(self._file(name), self._file(_text(self._user, "client-key")), _NO_PASSPHRASE)
            return
        with tempfile.NamedTemporaryFile("w", prefix="llmb-tui-") as file:  # mode 0600, and removed at once
            file.write(f"{certificate}\n{key or ''}\n")
            file.flush()
            context.load_cert_chain(file.name, None, _NO_PASSPHRASE)

    def _token(self, login: Mapping[str, Any]) -> str:
        token = _text(login, "token")
        if not token and (name := _text(self._user, "tokenFile")):
            try:
                token = self._file(name).read_text("ascii").strip()
            except (OSError, ValueError) as error:
                raise KubeconfigError(self._path, f"Its token file {clean_line(name)} cannot be read.") from error
        token = token or _text(self._user, "token")
        if not token.isprintable() or not token.isascii():
            raise KubeconfigError(self._path, "Its token is invalid.")
        remember_secret(token)
        return token

    def _credentials(self, *, renew: bool) -> dict[str, Any]:
        """Credentials of the exec plugin, cached until they expire; empty without a plugin."""
        plugin = self._user.get("exec")
        if not isinstance(plugin, dict):
            return {}
        with self._lock:
            if renew or time.time() >= self._login_until:
                self._login = self._run(plugin)
                self._login_until = _until(_text(self._login, "expirationTimestamp"))
            return self._login

    def _run(self, plugin: Mapping[str, Any]) -> dict[str, Any]:
        command, args = _text(plugin, "command"), _list(plugin, "args")
        pairs = [pair for pair in _list(plugin, "env") if isinstance(pair, dict)]
        added = {_text(pair, "name"): _text(pair, "value") for pair in pairs}
        # The plugin does not get our secret: other programs of the user could read its environment.
        inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
        exec_info = {
            "apiVersion": _text(plugin, "apiVersion"),
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        name = clean_line(command) or "(no name)"
        try:
            # In its own session it cannot ask at the terminal, and is ended with all its child processes.
            with subprocess.Popen(
                [str(self._file(command)) if "/" in command else command, *map(str, args)],
                env={**inherited, **added, "KUBERNETES_EXEC_INFO": json.dumps(exec_info)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            ) as process:
                try:
                    answer, stderr = _outputs(process)
                except BaseException:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or "it is not a program"
            why = f"The program {name} cannot be started: {words}."
            raise KubeconfigError(
                self._path, why, f"Install it. {short_line(server_words(_text(plugin, 'installHint')))}"
            ) from error
        except subprocess.TimeoutExpired:
            why = f"The program {name} gave no login within {duration(PLUGIN_S)}."
            raise KubeconfigError(self._path, why, _LOG_IN) from None
        except subprocess.SubprocessError as error:
            raise KubeconfigError(self._path, f"The program {name} gave no login: {error}.", _LOOK_AT_IT) from None
        code = process.returncode
        try:
            status = parse_json(answer)["status"] if code == 0 else None
        except (ValueError, KeyError, TypeError):
            status = None
        if not isinstance(status, dict):
            words = short_line(server_words(stderr.decode(errors="replace").strip().rpartition("\n")[2]))
            if code == 0:
                words = "its output has no credentials in the form of Kubernetes"
            why = f"The program {name} gave no login: {words or f'exit code {code}'}."
            raise KubeconfigError(self._path, why, _LOG_IN if code else _LOOK_AT_IT)
        return status


def _outputs(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Wait for the end of an exec plugin, and return its output and the end of its messages.

    A child process that the plugin leaves behind may keep the pipes open and write to them; that is not read.
    Raises subprocess.TimeoutExpired, and SubprocessError for an output that is longer than any login.
    """
    ends = time.monotonic() + PLUGIN_S
    out, err = process.stdout, process.stderr
    assert out is not None and err is not None  # noqa: S101, PT018 - for the type checker: both are pipes
    for pipe in (out, err):
        os.set_blocking(pipe.fileno(), False)
    answer = messages = b""
    has_ended = False
    while not has_ended:
        with contextlib.suppress(subprocess.TimeoutExpired):
            has_ended = process.wait(_LOOK_EVERY_S) is not None
        answer += out.read(_LONGEST_FILE) or b""  # a raw pipe returns None if it has no bytes
        messages = (messages + (err.read(_LONGEST_FILE) or b""))[-_LONGEST_FILE:]
        if len(answer) > _LONGEST_FILE:
            raise subprocess.SubprocessError(f"it printed more than {byte_size(_LONGEST_FILE)}")
        if time.monotonic() >= ends and not has_ended:
            raise subprocess.TimeoutExpired(process.args, PLUGIN_S)
    return answer, messages


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _decoded(data: str) -> str | None:
    """Decode PEM from base64; None for an empty text. Raises ValueError."""
    return base64.b64decode(data, validate=True).decode("ascii") if data else None


def _until(text: str) -> float:
    """Unix time until which a login is used; without an expiry date, it is used until it is refused."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return float("inf")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - _SOON_S
