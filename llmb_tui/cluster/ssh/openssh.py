"""How to reach a host: what the user's own OpenSSH configuration says, as `ssh -G` resolves it, or plain defaults.

`ssh -G` reads Include, Match and Host for us. What it leaves to the moment of use, tokens such as `%h`, is expanded
here as ssh_config(5) describes it.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from llmb_tui.cluster.failures import BadSshConfig
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG, LoginProfile
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean
from llmb_tui.store.paths import expanded, home

SSH_PORT = 22
METHODS = ("publickey", "keyboard-interactive", "password")
"""Ways to log in that we have, in the order in which OpenSSH tries them."""

_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_USER_HOSTS = "~/.ssh/known_hosts"
_GLOBAL_HOSTS = "/etc/ssh/ssh_known_hosts"
_CONNECT_DEADLINE_S = 15.0
# `Match exec` and a canonical name may ask the network.
_RESOLVE_DEADLINE_S = 20.0
_NO = ("no", "false")
_MOST_HOPS = 8


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How to reach one host and log in there."""

    name: str
    """The host as it was asked for: an alias, a name or an address."""
    host: str
    user: str
    port: int = SSH_PORT
    identity_files: tuple[str, ...] = ()
    """Key files named for this host."""
    default_keys: tuple[str, ...] = _DEFAULT_KEYS
    """Key files to look for where none is named."""
    certificate_files: tuple[str, ...] = ()
    identities_only: bool = False
    agent: str | None = None
    """Socket of the agent; None: no agent."""
    known_hosts: tuple[Path, ...] = ()
    """Files to read; an accepted key is appended to the first."""
    host_key_alias: str | None = None
    hash_known_hosts: bool = False
    trusts_known_keys_only: bool = False
    """Refuse an unknown host without a question (StrictHostKeyChecking yes)."""
    methods: tuple[str, ...] = METHODS
    connect_deadline_s: float = _CONNECT_DEADLINE_S
    proxy_jump: tuple[str, ...] = ()
    proxy_command: str | None = None
    leads_to: str = ""
    """The login node that is reached through this host; empty for the login node itself."""
    source: str = "No OpenSSH configuration was read."
    """A sentence: where these settings come from."""

    @property
    def login(self) -> str:
        """`user@name`, clean, for questions and errors."""
        return clean(f"{self.user}@{self.name}")

    @property
    def look(self) -> str:
        """A command that shows, in another terminal, what passes between `ssh` and this host."""
        port = "" if self.port == SSH_PORT else f"-p {self.port} "
        return f"ssh -v {port}{self.login}"

    @property
    def place(self) -> str:
        """Name and address, clean, for errors; a jump host says where it leads to."""
        address = self.host if self.name == self.host else f"{self.name} ({self.host})"
        return clean(f"{address}, port {self.port}" + (f", on the way to {self.leads_to}" if self.leads_to else ""))


def settings_of(profile: LoginProfile) -> HostSettings:
    """Settings of the profile's login node; values that are set in the profile win.

    Raises BadSshConfig when `ssh -G` cannot answer.
    """
    settings = resolve(profile.host, profile.ssh_config, profile.user, profile.port)
    if profile.identity_file is not None:
        settings = replace(settings, identity_files=(profile.identity_file,), default_keys=(), certificate_files=())
    if profile.known_hosts is not None:
        settings = replace(settings, known_hosts=(expanded(profile.known_hosts),))
    return settings


def jump_route(profile: LoginProfile) -> tuple[HostSettings, ...]:
    """The hosts to log in to, one through the other, the login node last. Only the first may have a proxy command.

    As with `ssh`, a configured list of hops is taken as it stands, and the first of them has hops of its own.
    Raises BadSshConfig, also when the way leads in a circle.
    """
    route: tuple[HostSettings, ...] = (settings_of(profile),)
    while route[0].proxy_jump:
        hops = [resolve(hop, profile.ssh_config) for hop in route[0].proxy_jump]
        # The list itself is the way to all but the first of them.
        later = [replace(hop, proxy_jump=(), proxy_command=None) for hop in hops[1:]]
        route = (hops[0], *later, replace(route[0], proxy_jump=()), *route[1:])
        _refuse_circle(route)
    return (*(replace(hop, leads_to=profile.host) for hop in route[:-1]), route[-1])


def resolve(destination: str, config: str | None, user: str | None = None, port: int | None = None) -> HostSettings:
    """Settings of `[user@]host[:port]` or `ssh://[user@]host[:port]`; `user` and `port` win.

    `config` names a configuration file to read instead of the user's own, or is `none`. Without an `ssh` program the
    settings are plain defaults. Raises BadSshConfig.
    """
    host, its_user, its_port = _parts(destination)
    user, port = user or its_user, port or its_port
    program = None if config == NO_SSH_CONFIG else shutil.which("ssh")
    if program is None:
        if config not in (None, NO_SSH_CONFIG):
            raise BadSshConfig(
                f"Could not read the OpenSSH configuration {config}.",
                "There is no `ssh` program on this machine, which reads it.",
                "Install OpenSSH's client, or set ssh_config = 'none' in the cluster's profile.",
            )
        return _plain(host, user, port)
    file = str(expanded(config)) if config is not None else None
    command = [program, "-G", *(["-F", file] if file else [])]
    command += [*(["-l", user] if user else []), *(["-p", str(port)] if port else []), "--", host]
    return parse_answer(host, _ask(command, host), f"Settings are from `ssh -G`, which {_source(file)}.")


def parse_answer(name: str, answer: str, source: str) -> HostSettings:
    """Settings from what `ssh -G` printed: one keyword and its value on each line."""
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
    # Where no key is named, ssh -G prints all the names that it would look for.
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
    )


def _refuse_circle(route: tuple[HostSettings, ...]) -> None:
    places = [(settings.user, settings.host.lower(), settings.port) for settings in route]
    if len(set(places)) < len(places) or len(places) > _MOST_HOPS:
        hops = " - ".join(settings.login for settings in route)
        raise BadSshConfig(
            f"The way to {clean(route[-1].name)} leads in a circle: {hops}.",
            "ProxyJump in the OpenSSH configuration sends a host through itself.",
            "Give the jump host `ProxyJump none`, above the lines that set it for all hosts.",
        )


def _plain(host: str, user: str | None, port: int | None) -> HostSettings:
    return HostSettings(
        name=host,
        host=host,
        user=user or _own_name(),
        port=port or SSH_PORT,
        agent=os.environ.get("SSH_AUTH_SOCK"),
        known_hosts=(expanded(_USER_HOSTS), Path(_GLOBAL_HOSTS)),
    )


def _parts(destination: str) -> tuple[str, str | None, int | None]:
    """Host, user and port; an address with many colons has no port unless it is in brackets."""
    is_url = destination.startswith("ssh://")
    user, _, place = destination.removeprefix("ssh://").rstrip("/").rpartition("@")
    match = re.fullmatch(r"\[(?P<address>[^]]*)](?::(?P<port>\d+))?|(?P<host>[^:]*):(?P<number>\d+)", place)
    name = (unquote(user) if is_url else user) or None
    if match is None:
        return place, name, None
    port = match["port"] or match["number"]
    return match["address"] or match["host"] or "", name, int(port) if port else None


def _ask(command: list[str], host: str) -> str:
    """What `ssh -G` prints. It has a session of its own, so that nothing it starts can reach the terminal."""
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
            stdout, stderr = process.communicate(timeout=_RESOLVE_DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            why = f"No answer within {duration(_RESOLVE_DEADLINE_S)}; a `Match exec` in it may hang."
            raise _bad_config(command, host, why) from None
    if process.returncode != 0:
        raise _bad_config(command, host, clean(stderr.strip()) or f"It ended with exit code {process.returncode}.")
    return stdout


def _bad_config(command: Sequence[str], host: str, why: str) -> BadSshConfig:
    return BadSshConfig(
        f"OpenSSH could not read its configuration for {clean(host)}.",
        why,
        f"Mend it: `{clean(shell_join(['ssh', *command[1:]]))}` in another terminal shows the same.",
    )


def _source(config: str | None) -> str:
    """What `ssh` had to read, in words."""
    if config is not None:
        return f"read {clean(config)}"
    files = [name for name in ("~/.ssh/config", "/etc/ssh/ssh_config") if expanded(name).is_file()]
    return f"read {' and '.join(files)}" if files else "found no configuration file, so these are OpenSSH's defaults"


def _tokens(name: str, host: str, user: str, port: int, values: Mapping[str, str]) -> dict[str, str]:
    hostname = socket.gethostname()
    own = {}
    with contextlib.suppress(BadSshConfig):
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
    """The name of who runs this program. Raises BadSshConfig where nothing tells it, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise BadSshConfig(
            "Which user to log in as is not known.",
            f"Nothing is known of the user id {os.getuid()}, and USER is not set.",
            "Set `user` in the cluster's profile, or USER.",
        ) from error


def _expand_tokens(text: str, tokens: Mapping[str, str]) -> str:
    """A token that is not known here stays as it is, and shows in the error that follows."""
    return re.sub("%(.)", lambda match: tokens.get(match[1], match[0]), text)


def _shell_command(text: str, tokens: Mapping[str, str]) -> str:
    """As `ssh` does, which puts names into the command as they are; newer ones refuse such names as well."""
    for name in {tokens[token] for token in re.findall("%(.)", text) if token in ("n", "h", "r")}:
        if re.search(r"^-|[\s'`\"$\\;&<>|(){}]", name):
            raise BadSshConfig(
                f"The name {clean(name)} cannot be given to a ProxyCommand.",
                "A shell would not take it as one word.",
                "Correct the host or the user of this cluster.",
            )
    return _expand_tokens(text, tokens)


def _expand(path: str, tokens: Mapping[str, str]) -> str:
    """A file's path with `~`, tokens and `${VARIABLES}` expanded."""
    text = re.sub(r"\$\{(\w+)}", lambda match: os.environ.get(match[1], match[0]), _expand_tokens(path, tokens))
    return str(expanded(text))


def _agent(configured: str | None, tokens: Mapping[str, str]) -> str | None:
    if configured is None or configured == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK")
    if configured.lower() == "none":
        return None
    if re.fullmatch(r"\$\w+", configured):
        return os.environ.get(configured[1:])
    return _expand(configured, tokens)


def _known_hosts(values: Mapping[str, str], tokens: Mapping[str, str]) -> tuple[Path, ...]:
    """The user's files, then the system's; without one of the user's an accepted key goes into no file."""
    user = [_expand(file, tokens) for file in _split_paths(values.get("userknownhostsfile", _USER_HOSTS))]
    system = [_expand(file, tokens) for file in _split_paths(values.get("globalknownhostsfile", _GLOBAL_HOSTS))]
    return tuple(Path(file) for file in [*(user or [os.devnull]), *system])


def _split_paths(value: str) -> list[str]:
    """Paths that `ssh -G` prints on one line without quotes: a new one begins where a word can begin one."""
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
