"""`Kube`: the Kubernetes that a kubeconfig names, as far as the logs of pods need it."""

from __future__ import annotations

import base64
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

from llmb_tui.cluster.failures import Unanswered, Unreachable
from llmb_tui.cluster.remote_file import Unreadable
from llmb_tui.cluster.runai.https import HttpsServer, Reply, tls_context
from llmb_tui.cluster.runai.secret import VARIABLE
from llmb_tui.cluster.yaml_text import NotYaml, yaml_of
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean_line, short_line
from llmb_tui.store.paths import expanded

_WITHIN_S = 20.0
_PLUGIN_S = 30.0
_SOON_S = 60.0
_LONGEST_FILE = 1 << 20
_NOBODY = ""
"""Passphrase of a key: nobody is asked for one on the terminal."""
_FIRST = "Log in with it in another terminal first."


class BadKubeconfig(Unreadable):
    """The kubeconfig cannot be read, or says something that cannot be used: no log can be read by it. Exit code 1."""

    def __init__(self, path: Path, why: str, fix: str = "Mend the file, or name another one.") -> None:
        super().__init__(f"The kubeconfig {clean_line(str(path))} cannot be used.", why, fix, exit_code=1)


class Kube:
    """The server and the user of the current context; its credentials are looked up when they are needed."""

    def __init__(self, path: str) -> None:
        """Raises BadKubeconfig."""
        self._path = expanded(path)
        self._lock = threading.Lock()
        self._given: dict[str, Any] = {}
        """What the exec plugin gave last."""
        self._given_until = 0.0
        self._load()

    def open(self, path: str) -> Reply:
        """A GET of this path, whose body is read piece by piece. A login that is refused is made anew, once.

        Raises Disconnected where the connection breaks, and Unreadable where there is none, or no answer: that says
        nothing of the line to Run:ai.
        """
        for is_last in (False, True):
            given = self._credentials(anew=is_last)
            server = HttpsServer(
                self.url,
                self._trust(given),
                proxy=_text(self._cluster, "proxy-url") or None,
                server_name=_text(self._cluster, "tls-server-name"),
            )
            token = self._token(given)
            headers = {"Accept": "*/*"} | ({"Authorization": f"Bearer {token}"} if token else {})
            try:
                reply = server.open("GET", self._prefix + path, headers, ends=time.monotonic() + _WITHIN_S)
            except (Unreachable, Unanswered) as trouble:
                raise Unreadable(trouble.what, trouble.why, trouble.fix) from trouble
            if reply.status != 401:
                return reply
            reply.close()
            self._load()  # whoever logged in again may have written it there
        why = f"It is the login of {clean_line(str(self._path))}."
        raise Unreadable(f"{server.name} does not accept the login.", why, "Log in to the cluster again.")

    def _load(self) -> None:
        config = self._read()
        context = self._named(config, "context", _text(config, "current-context"))
        self._user = self._named(config, "user", _text(context, "user"))
        self._cluster = self._named(config, "cluster", _text(context, "cluster"))
        self.url = _text(self._cluster, "server")
        if not self.url.startswith("https://"):
            raise BadKubeconfig(self._path, "Its server is not an address with https.")
        try:
            server = urlsplit(self.url)
            is_address = bool(server.hostname) and server.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise BadKubeconfig(self._path, "The address of its server has no host, or a port that there is not.")
        self._prefix = server.path.rstrip("/")
        if self._cluster.get("insecure-skip-tls-verify"):
            why = "It says not to check the server's certificate (`insecure-skip-tls-verify`)."
            raise BadKubeconfig(self._path, why, "Give the server's certificates in it, as `certificate-authority`.")
        unknown = [key for key in ("auth-provider", "username") if self._user.get(key)]
        if unknown:
            why = f"It logs in by `{unknown[0]}`, which Kubernetes has dropped."
            raise BadKubeconfig(self._path, why, "Let it log in by a token, a client certificate or an exec plugin.")

    def _read(self) -> dict[str, Any]:
        try:
            with self._path.open("rb") as file:
                config = yaml_of(file.read(_LONGEST_FILE))
        except OSError as error:
            raise BadKubeconfig(self._path, f"{error.strerror}.") from error
        except NotYaml:
            raise BadKubeconfig(self._path, "It is not YAML.") from None
        if not isinstance(config, dict):
            raise BadKubeconfig(self._path, "It holds no settings.")
        return config

    def _named(self, config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
        for entry in _list(config, f"{kind}s"):
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
                return dict(entry[kind])
        raise BadKubeconfig(self._path, f"It has no {kind} of the name {clean_line(name) or 'that is needed'}.")

    def _file(self, name: str) -> Path:
        """A file that it names, which may be relative to it."""
        return self._path.parent / expanded(name)

    def _trust(self, given: Mapping[str, Any]) -> ssl.SSLContext:
        data, file = _text(self._cluster, "certificate-authority-data"), _text(self._cluster, "certificate-authority")
        try:
            # Only these are trusted where it names some, as by kubectl.
            context = tls_context(self._file(file) if file and not data else None, _decoded(data))
            self._identify(context, given)
        except (ValueError, OSError, ssl.SSLError) as error:
            raise BadKubeconfig(self._path, f"A certificate or key in it is wrong: {type(error).__name__}.") from None
        return context

    def _identify(self, context: ssl.SSLContext, given: Mapping[str, Any]) -> None:
        """Give the context the user's certificate, if he has one. Python takes it from files only."""
        if certificate := _text(given, "clientCertificateData"):
            key: str | None = _text(given, "clientKeyData")
        else:
            certificate = _decoded(_text(self._user, "client-certificate-data")) or ""
            key = _decoded(_text(self._user, "client-key-data"))
        if not certificate:
            if name := _text(self._user, "client-certificate"):
                context.load_cert_chain(self._file(name), self._file(_text(self._user, "client-key")), _NOBODY)
            return
        with tempfile.NamedTemporaryFile("w", prefix="llmb-tui-") as file:  # 0600, and gone at once
            file.write(f"{certificate}\n{key or ''}\n")
            file.flush()
            context.load_cert_chain(file.name, None, _NOBODY)

    def _token(self, given: Mapping[str, Any]) -> str:
        token = _text(given, "token")
        if not token and (name := _text(self._user, "tokenFile")):
            try:
                token = self._file(name).read_text("ascii").strip()
            except (OSError, ValueError) as error:
                raise BadKubeconfig(self._path, f"The file of its token cannot be read: {clean_line(name)}.") from error
        token = token or _text(self._user, "token")
        if not token.isprintable() or not token.isascii():
            raise BadKubeconfig(self._path, "Its token is no token.")
        return token

    def _credentials(self, *, anew: bool) -> dict[str, Any]:
        """What the exec plugin gives, kept for as long as it says; empty where there is none."""
        plugin = self._user.get("exec")
        if not isinstance(plugin, dict):
            return {}
        with self._lock:
            if anew or time.time() >= self._given_until:
                self._given = self._run(plugin)
                self._given_until = _until(_text(self._given, "expirationTimestamp"))
            return self._given

    def _run(self, plugin: Mapping[str, Any]) -> dict[str, Any]:
        command, args = _text(plugin, "command"), _list(plugin, "args")
        pairs = [pair for pair in _list(plugin, "env") if isinstance(pair, dict)]
        added = {_text(pair, "name"): _text(pair, "value") for pair in pairs}
        # What it does not need is not handed on: any of its user's programs could read it there.
        ours = {name: value for name, value in os.environ.items() if name != VARIABLE}
        asked = {"apiVersion": _text(plugin, "apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
        name = clean_line(command) or "that it names"
        # Files, not pipes: what the program leaves running cannot hold them open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                # In a session of its own it cannot ask at the terminal, and can be ended with all that it has started.
                with subprocess.Popen(
                    [str(self._file(command)) if "/" in command else command, *map(str, args)],
                    env={**ours, **added, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                ) as process:
                    try:
                        code = process.wait(_PLUGIN_S)
                    except BaseException:
                        os.killpg(process.pid, signal.SIGKILL)
                        raise
            except (OSError, ValueError) as error:
                why = f"The program {name} cannot be started: {getattr(error, 'strerror', None) or 'it is no program'}."
                raise BadKubeconfig(
                    self._path, why, f"Install it. {short_line(_text(plugin, 'installHint'))}"
                ) from error
            except subprocess.TimeoutExpired:
                why = f"The program {name} gave no login within {duration(_PLUGIN_S)}."
                raise BadKubeconfig(self._path, why, _FIRST) from None
            out.seek(0)
            err.seek(0)
            answer, said = out.read(_LONGEST_FILE), err.read(_LONGEST_FILE)
        try:
            status = json.loads(answer)["status"] if code == 0 else None
        except (ValueError, KeyError, TypeError):
            status = None
        if not isinstance(status, dict):
            words = short_line(said.decode(errors="replace").strip().rpartition("\n")[2])
            why = f"The program {name} gave no login: {words or f'exit code {code}'}."
            raise BadKubeconfig(self._path, why, _FIRST)
        return status


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _decoded(data: str) -> str | None:
    """PEM that stands there in base64; None for none. Raises ValueError."""
    return base64.b64decode(data, validate=True).decode("ascii") if data else None


def _until(text: str) -> float:
    """Unix time until which a login is used; one that says nothing is used for as long as it is accepted."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return float("inf")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - _SOON_S
