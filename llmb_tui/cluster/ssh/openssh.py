"""Settings of a host from the user's OpenSSH configuration, which `ssh -G` resolves, or plain defaults.

`ssh -G` evaluates Include, Match and Host. It does not expand tokens such as `%h`: this module expands them as
ssh_config(5) describes.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from llmb_tui.cluster.failures import SshConfigError
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG, LoginProfile
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean
from llmb_tui.store.paths import expand_user, home

SSH_PORT = 22
METHODS = ("publickey", "keyboard-interactive", "password")
"""Supported login methods, in OpenSSH's order."""

_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_USER_HOSTS = "~/.ssh/known_hosts"
_GLOBAL_HOSTS = "/etc/ssh/ssh_known_hosts"
_CONNECT_DEADLINE_S = 15.0
RESOLVE_DEADLINE_S = 20.0
"""Deadline of `ssh -G`, seconds: `Match exec` and canonical names may need the network."""
_CHECK_S = 5.0
_NO = ("no", "false")
_MOST_HOPS = 8


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Settings for the connection to one host and its login."""

    name: str
    """Requested alias, name or address of the host."""
    host: str
    user: str
    port: int = SSH_PORT
    identity_files: tuple[str, ...] = ()
    """Key files named for this host."""
    default_keys: tuple[str, ...] = _DEFAULT_KEYS
    """Key files to try if none is named."""
    certificate_files: tuple[str, ...] = ()
    identities_only: bool = False
    agent: str | None = None
    """Path of the agent's socket; None: no agent."""
    known_hosts: tuple[Path, ...] = ()
    """Files of known host keys; an accepted key is appended to the first."""
    revoked_host_keys: tuple[Path, ...] = ()
    """Files of revoked host keys."""
    host_key_alias: str | None = None
    hash_known_hosts: bool = False
    trusts_known_keys_only: bool = False
    """Refuse an unknown host without a question (StrictHostKeyChecking yes)."""
    methods: tuple[str, ...] = METHODS
    connect_deadline_s: float = _CONNECT_DEADLINE_S
    proxy_jump: tuple[str, ...] = ()
    proxy_command: str | None = None
    leads_to: str = ""
    """Login node behind this jump host; empty for the login node itself."""
    source: str = "No OpenSSH configuration was read."
    """Sentence that names the source of these settings."""
    options: tuple[str, ...] = ()
    """Options with which `ssh` reads the same configuration and offers the same key."""
    shares_connections: bool = False
    """Whether the configuration names a socket over which `ssh` commands share one connection (ControlPath)."""

    @property
    def login(self) -> str:
        """Text `user@name`, clean, for questions and errors."""
        return clean(f"{self.user}@{self.name}")

    @property
    def debug_command(self) -> str:
        """Command that shows details of a login to this host in another terminal."""
        return clean(shlex.join([*self._command("-v"), f"{self.user}@{self.name}"]))

    def has_shared_connection(self) -> bool:
        """Whether an open connection of `ssh` to this host could serve other `ssh` commands."""
        if not self.shares_connections:
            return False
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            command = [*self._command("-O", "check"), "--", f"{self.user}@{self.name}"]
            end = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_CHECK_S,
                start_new_session=True,  # programs of the configuration must not reach the terminal
            )
            return end.returncode == 0
        return False

    def _command(self, *options: str) -> list[str]:
        port = [] if self.port == SSH_PORT else ["-p", str(self.port)]
        return ["ssh", *options, *self.options, *port]

    @property
    def place(self) -> str:
        """Name and address, clean, for errors; for a jump host also the login node behind it."""
        address = self.host if self.name == self.host else f"{self.name} ({self.host})"
        return clean(f"{address}, port {self.port}" + (f", on the way to {self.leads_to}" if self.leads_to else ""))


def settings_of(profile: LoginProfile) -> HostSettings:
    """Settings of the profile's login node; values of the profile have priority.

    Raises SshConfigError if `ssh -G` fails.
    """
    settings = resolve(profile.host, profile.ssh_config, profile.user, profile.port)
    if profile.identity_file is not None:
        key = profile.identity_file
        options = (*settings.options, "-i", str(expand_user(key)))
        settings = replace(settings, identity_files=(key,), default_keys=(), certificate_files=(), options=options)
    if profile.known_hosts is not None:
        settings = replace(settings, known_hosts=(expand_user(profile.known_hosts),))
    return settings


def jump_route(profile: LoginProfile) -> tuple[HostSettings, ...]:
    """Hosts of the route in order, the login node last. Only the first may have a proxy command.

    As in `ssh`, a configured list of hops is used unchanged, and only its first hop may have more hops before it.
    Raises SshConfigError, also if the route is a circle.
    """
    route: tuple[HostSettings, ...] = (settings_of(profile),)
    while route[0].proxy_jump:
        hops = [resolve(hop, profile.ssh_config) for hop in route[0].proxy_jump]
        # The list itself is the route to all hops but the first.
        later = [replace(hop, proxy_jump=(), proxy_command=None) for hop in hops[1:]]
        route = (hops[0], *later, replace(route[0], proxy_jump=()), *route[1:])
        _refuse_circle(route)
    return (*(replace(hop, leads_to=profile.host) for hop in route[:-1]), route[-1])


def resolve(destination: str, config: str | None, user: str | None = None, port: int | None = None) -> HostSettings:
    """Settings of `[user@]host[:port]` or `ssh://[user@]host[:port]`; `user` and `port` have priority.

    `config` is `none`, or a configuration file to read instead of the user's own. Without an `ssh` program the settings
    are plain defaults. Raises SshConfigError.
    """
    host, named_user, named_port = _parts(destination)
    user, port = user or named_user, port or named_port
    program = None if config == NO_SSH_CONFIG else shutil.which("ssh")
    if program is None:
        if config not in (None, NO_SSH_CONFIG):
            raise SshConfigError(
                f"Could not read the OpenSSH configuration {config}.",
                "`ssh` reads the configuration, and is not installed on this machine.",
                "Install the OpenSSH client, or set ssh_config = 'none' in the cluster's profile.",
            )
        return replace(_plain(host, user, port), options=() if config is None else ("-F", config))
    file = str(expand_user(config)) if config is not None else None
    options = ("-F", file) if file else ()
    command = [program, "-G", *options]
    command += [*(["-l", user] if user else []), *(["-p", str(port)] if port else []), "--", host]
    settings = parse_answer(host, _ask(command, host), f"The settings are from `ssh -G`, which {_source(file)}.")
    return replace(settings, options=options)


def parse_answer(name: str, answer: str, source: str) -> HostSettings:
    """Parse the output of `ssh -G`: one keyword and its value on each line."""
    values: dict[str, list[str]] = {}
    for line in answer.splitlines():
        keyword, _, value = line.partition(" ")
        values.setdefault(keyword.lower(), []).append(value.strip())
    only = {keyword: several[0] for keyword, several in values.items()}
    host, user = only.get("hostname", name), only.get("user") or _own_name()
    port = int(only["port"]) if only.get("port", "").isdigit() else SSH_PORT
    tokens = _tokens(name, host, user, port, only)
    files, certificates = (
        tuple(_expand(file, tokens) for file in values.get(keyword, []) if file.lower() != "none")
        for keyword in ("identityfile", "certificatefile")
    )
    # If the configuration names no key, `ssh -G` prints all default names.
    are_defaults = {_expand(file, tokens) for file in _DEFAULT_KEYS} <= set(files)
    deadline = only.get("connecttimeout", "")
    jumps = only.get("proxyjump", "none")
    command = only.get("proxycommand", "none")
    return HostSettings(
        name=name,
        host=host,
        user=user,
        port=port,
        identity_files=() if are_defaults else files,
        default_keys=files if are_defaults else (),
        certificate_files=certificates,
        identities_only=only.get("identitiesonly", "no") not in _NO,
        agent=_agent(only.get("identityagent"), tokens),
        known_hosts=_known_hosts(only, tokens),
        revoked_host_keys=tuple(
            Path(_expand(file, tokens)) for file in _split_paths(only.get("revokedhostkeys", "none"))
        ),
        host_key_alias=only.get("hostkeyalias"),
        hash_known_hosts=only.get("hashknownhosts", "no") not in _NO,
        trusts_known_keys_only=only.get("stricthostkeychecking", "ask") in ("yes", "true"),
        methods=_methods(only),
        connect_deadline_s=float(deadline) if deadline.isdigit() and int(deadline) else _CONNECT_DEADLINE_S,
        proxy_jump=()
        if jumps.lower() == "none"
        else tuple(_expand_tokens(j.strip(), tokens) for j in jumps.split(",")),
        proxy_command=None if command.lower() == "none" else _shell_command(command, tokens),
        source=source,
        shares_connections=only.get("controlpath", "none").lower() != "none",
    )


def _refuse_circle(route: tuple[HostSettings, ...]) -> None:
    places = [(settings.user, settings.host.lower(), settings.port) for settings in route]
    if len(set(places)) < len(places) or len(places) > _MOST_HOPS:
        hops = " - ".join(settings.login for settings in route)
        raise SshConfigError(
            f"The route to {clean(route[-1].name)} is a circle or too long: {hops}.",
            "In the OpenSSH configuration, ProxyJump may apply to the jump host itself.",
            "Set `ProxyJump none` for the jump host, above the lines that set ProxyJump for all hosts.",
        )


def _plain(host: str, user: str | None, port: int | None) -> HostSettings:
    return HostSettings(
        name=host,
        host=host,
        user=user or _own_name(),
        port=port or SSH_PORT,
        agent=os.environ.get("SSH_AUTH_SOCK"),
        known_hosts=(expand_user(_USER_HOSTS), Path(_GLOBAL_HOSTS)),
    )


def _parts(destination: str) -> tuple[str, str | None, int | None]:
    """Parse host, user and port; an address with several colons has no port unless it is in brackets."""
    is_url = destination.startswith("ssh://")
    user, _, place = destination.removeprefix("ssh://").rstrip("/").rpartition("@")
    match = re.fullmatch(r"\[(?P<address>[^]]*)](?::(?P<port>\d+))?|(?P<host>[^:]*):(?P<number>\d+)", place)
    name = (unquote(user) if is_url else user) or None
    if match is None:
        return place, name, None
    port = match["port"] or match["number"]
    return match["address"] or match["host"] or "", name, int(port) if port else None


def _ask(command: list[str], host: str) -> str:
    """Run `ssh -G`, and return its output. Its own session keeps its child processes from the terminal."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=RESOLVE_DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            why = f"`ssh -G` did not answer within {duration(RESOLVE_DEADLINE_S)}; a `Match exec` may hang."
            raise _bad_config(command, host, why) from None
    if process.returncode != 0:
        raise _bad_config(command, host, clean(stderr.strip()) or f"`ssh -G` returned exit code {process.returncode}.")
    return stdout


def _bad_config(command: Sequence[str], host: str, why: str) -> SshConfigError:
    return SshConfigError(
        f"OpenSSH could not read its configuration for {clean(host)}.",
        why,
        f"Fix the configuration; `{clean(shell_join(['ssh', *command[1:]]))}` shows the same message in a terminal.",
    )


def _source(config: str | None) -> str:
    """Configuration that `ssh` reads, in words."""
    if config is not None:
        return f"read {clean(config)}"
    files = [name for name in ("~/.ssh/config", "/etc/ssh/ssh_config") if expand_user(name).is_file()]
    return f"read {' and '.join(files)}" if files else "found no configuration file, so these are OpenSSH's defaults"


def _tokens(name: str, host: str, user: str, port: int, values: Mapping[str, str]) -> dict[str, str]:
    hostname = socket.gethostname()
    own = {}
    with contextlib.suppress(SshConfigError):
        own["u"] = _own_name()
    return own | {
        "%": "%",
        "d": str(home() or "/"),
        "h": host,
        "i": str(os.getuid()),
        "j": values.get("proxyjump", ""),
        "k": values.get("hostkeyalias", name),
        "L": hostname.partition(".")[0],
        "l": hostname,
        "n": name,
        "p": str(port),
        "r": user,
    }


def _own_name() -> str:
    """Name of the user who runs this program. Raises SshConfigError if it is unknown, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise SshConfigError(
            "The user name for the login is unknown.",
            f"This machine has no user with the id {os.getuid()}, and the variable USER is not set.",
            "Set `user` in the cluster's profile, or set USER.",
        ) from error


def _expand_tokens(text: str, tokens: Mapping[str, str]) -> str:
    """Expand tokens. An unknown token is left unchanged, and the error that it causes shows it."""
    return re.sub("%(.)", lambda match: tokens.get(match[1], match[0]), text)


def _shell_command(text: str, tokens: Mapping[str, str]) -> str:
    """Expand a ProxyCommand as `ssh` does, with unquoted names; names that a shell would split are refused."""
    for name in {tokens[token] for token in re.findall("%(.)", text) if token in ("n", "h", "r")}:
        if re.search(r"^-|[\s'`\"$\\;&<>|(){}]", name):
            raise SshConfigError(
                f"The name {clean(name)} cannot be used in a ProxyCommand.",
                "A shell would not read it as one plain word.",
                "Correct the host or the user of this cluster.",
            )
    return _expand_tokens(text, tokens)


def _expand(path: str, tokens: Mapping[str, str]) -> str:
    """Expand `~`, tokens and `${VARIABLES}` in a path."""
    text = re.sub(r"\$\{(\w+)}", lambda match: os.environ.get(match[1], match[0]), _expand_tokens(path, tokens))
    return str(expand_user(text))


def _agent(configured: str | None, tokens: Mapping[str, str]) -> str | None:
    if configured is None or configured == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK")
    if configured.lower() == "none":
        return None
    if re.fullmatch(r"\$\w+", configured):
        return os.environ.get(configured[1:])
    return _expand(configured, tokens)


def _known_hosts(values: Mapping[str, str], tokens: Mapping[str, str]) -> tuple[Path, ...]:
    """The user's files, then the system's. If the user has none, an accepted key is not written to a file."""
    user = [_expand(file, tokens) for file in _split_paths(values.get("userknownhostsfile", _USER_HOSTS))]
    system = [_expand(file, tokens) for file in _split_paths(values.get("globalknownhostsfile", _GLOBAL_HOSTS))]
    return tuple(Path(file) for file in [*(user or [os.devnull]), *system])


def _split_paths(value: str) -> list[str]:
    """Split paths that `ssh -G` prints on one line without quotes: a word such as `/…` or `~…` begins a path."""
    paths: list[str] = []
    for word in value.split():
        if paths and word[0] not in "/~%$":
            paths[-1] += f" {word}"
        else:
            paths.append(word)
    return [path for path in paths if path.lower() != "none"]


def _methods(values: Mapping[str, str]) -> tuple[str, ...]:
    methods: Iterable[str] = METHODS
    if "preferredauthentications" in values:
        methods = (method.strip() for method in values["preferredauthentications"].split(","))
    switches = {
        "publickey": "pubkeyauthentication",
        "keyboard-interactive": "kbdinteractiveauthentication",
        "password": "passwordauthentication",
    }
    return tuple(m for m in methods if m in METHODS and values.get(switches[m], "yes") not in _NO)
