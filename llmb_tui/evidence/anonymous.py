"""`Anonymizer`: replaces host and user names, addresses and home paths in texts, each by one alias everywhere.

Names are learned from places in the files that are known to contain them: a job's nodes, accounting's users, variables
and prefixes in logs, home directories. The caller checks the figures afterwards, because replacing a name that is also
a word of the log would change the data that is read from it.
"""

from __future__ import annotations

import contextlib
import getpass
import ipaddress
import json
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.kept_accounting import kept_rows
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.node_list import MOST_NODES, expand
from llmb_tui.launch.run import Run
from llmb_tui.store.files import explained_errors

WHAT = "Host and user names, addresses and home paths were replaced by aliases."
_PIECE = 1 << 20
_COMMON = {"root", "nobody", "ubuntu", "user", "users", "localhost", "localhost.localdomain", "none", "unknown", "n/a"}
"""Names that identify nobody."""
_NO_PERSON = {"nvidia", "nemo", "runner", "jenkins", "work", "workspace", "data", "shared", "scratch", "home"}
"""Names of home directories in images and on build machines, and words of logs."""
_LETTERS = rb"\w\x80-\xbf\xc3-\xe1\xe3-\xf4"
"""Letters in UTF-8, of any script; other first bytes belong to punctuation, such as a quotation mark."""
_NAME = rb"[%s](?:[%s.-]*[%s])?" % (_LETTERS, _LETTERS, _LETTERS)
_HOST = rb"[A-Za-z](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_HOSTS = (
    rb"\b(?:HOSTNAME|SLURMD_NODENAME|SLURM_SUBMIT_HOST|SLURM_TOPOLOGY_ADDR|MASTER_ADDR)[\"']?[=:][ \t]*[\"']?(%s)",
    rb"(?m)^(?:\d+: ?)?(%s):\d+:\d+ \[\d+\] NCCL ",
    rb"(?m)^(?:\d+: ?)?GPUs of node (%s): \d",
    rb"\b(?:srun|slurmstepd|sbatch|slurmd): (?:error|info|fatal): (?:Node |node )?(%s): task",
    rb"\*\*\* (?:JOB|STEP) [\d.]+ ON (%s) ",
    rb"\"nodeName\": \"(%s)\"",
)
_USERS = (
    rb"\b(?:USER|LOGNAME|USERNAME|SLURM_JOB_USER)[\"']?[=:][ \t]*[\"']?(%s)",
    rb"\"submittedBy\": \"(%s)\"",
)
_HOME_DIRS = rb"(?:home|homes|Users|users|people)"
_NAME_ENDS = rb"(?!\.?[%s+~-])" % _LETTERS
_HOMES = re.compile(
    rb"(?<![\w.~-])/(?:[%s.+-]+/)*?(?:%s/)+(?:(?P<bucket>[%s-]{1,3})/(?=(?P=bucket)))*"
    rb"(?P<owner>%s)%s(?:/(?P<below>%s)%s)?" % (_LETTERS, _HOME_DIRS, _LETTERS, _NAME, _NAME_ENDS, _NAME, _NAME_ENDS)
)
"""`bucket`: as in `/home/j/jsmith`; `below`: a home in a group's directory, or a directory of a home."""
_OWN_HOME = re.compile(
    rb"\bHOME=[\"']?(?:/[%s.+-]+)*?/%s(?:/[%s.+-]+)*/(?P<owner>%s)%s"
    % (_LETTERS, _HOME_DIRS, _LETTERS, _NAME, _NAME_ENDS)
)
_MAC = rb"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])"
_MAIL = rb"(?<![A-Za-z0-9._+-])[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"
# Excludes versions of four parts, such as those of cuDNN.
_IPV4 = (
    rb"(?<![\w.+-])(?<!==)(?<!ersion )(?<!ersion: )(?<!ersion=)(?<!ERSION=)"
    rb"(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)"
)
_OF_IPV4 = rb"(?:(?:\.\d{1,3}){3})?"
"""Rest of `::ffff:10.1.2.3`, a form in which PyTorch may write an IPv4 address."""
_IPV6 = (
    rb"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}%s(?![\w:])"
    # NCCL writes its interface before the address, and a zone and a port after it: `ib0:fe80::1%%ib0<0>`.
    rb"|(?<=[\w.-]:)[0-9A-Fa-f:]{3,39}%s(?=(?:%%[\w.-]+)?<\d+>)"
) % (_OF_IPV4, _OF_IPV4)
_LEADING = rb"(?:[A-Za-z][A-Za-z0-9.-]{0,63},){0,64}+"
_BRACKETED = _LEADING + rb"[A-Za-z][A-Za-z0-9.-]{0,253}\[[0-9,-]+\](?:,[A-Za-z][A-Za-z0-9.-]*(?:\[[0-9,-]+\])?)*"
_NUMBERED = re.compile(r"(.*[A-Za-z-])(\d+)")


class Anonymizer:
    """Learns the names in runs, then replaces them in files."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._users: set[str] = set()
        self._owners: set[str] = set()
        """Names of directories that contain homes; they may also be names of groups."""
        self._clusters: set[str] = set()
        self._aliases: dict[str, dict[str, str]] = {}
        self._families: set[tuple[str, int]] = set()
        """(beginning of a node's name, digits of its number) of the known nodes."""
        self._known: dict[str, str] = {}
        """Hosts by their names in lower case."""
        self._pattern: re.Pattern[bytes] | None = None
        with contextlib.suppress(OSError, KeyError):
            self._add(self._users, getpass.getuser())
        self._add_host(socket.gethostname())

    def learn_run(self, run: Run, profile: ClusterProfile | None) -> None:
        """Learn the names in a run's record and in its cluster's profile."""
        if run.job is not None:
            self._add_nodes(run.job.node_list)
            for node in run.job.bad_nodes:
                self._add_host(node.partition(" ")[0])
        self._clusters.add(run.cluster)
        options = run.spec.sbatch_options if run.spec else {}
        for option in ("exclude", "nodelist"):  # nodes that the run may never have used
            self._add_nodes(options.get(option) or "")
        if profile is not None:
            self._add_nodes(profile.names.nodes)
            self._add(self._users, profile.names.user)
            self._add_host(profile.names.host)

    def learn_file(self, path: Path) -> None:
        """Learn the names in a file, at places that are known to contain names. Raises LlmbError."""
        hosts = [re.compile(pattern % _HOST) for pattern in _HOSTS]
        users = [re.compile(pattern % _NAME) for pattern in _USERS]
        with explained_errors("read", path), path.open("rb") as file:
            for text in _lines(file):
                for pattern in hosts:
                    for match in pattern.finditer(text):
                        self._add_host(match[1].decode())
                for pattern in users:
                    for match in pattern.finditer(text):
                        self._add(self._users, _text(match[1]))
                for homes, names in ((_OWN_HOME, self._users), (_HOMES, self._owners)):
                    for match in homes.finditer(text):
                        name = _text(match["owner"])
                        if len(name) > 3 and name.lower() not in _NO_PERSON:
                            self._add(names, name)

    def learn_accounting(self, path: Path) -> None:
        """Learn users and nodes from `sacct`'s lines; nothing if the file does not exist. Raises LlmbError."""
        for row in kept_rows(_text_in(path)):
            self._add(self._users, row.get("User", ""))
            self._add_nodes(row.get("NodeList", "").replace("None assigned", ""))

    def replace_in(self, path: Path) -> None:
        """Rewrite a file with aliases. Raises LlmbError."""
        fresh = path.with_name(f".{path.name}.anonymous")
        with explained_errors("write", path), path.open("rb") as file, fresh.open("xb") as out:
            out.writelines(self._replaced(text) for text in _lines(file))
        with explained_errors("write", path):
            fresh.replace(path)

    def replace_in_record(self, path: Path) -> None:
        """Rewrite the record of a run or a suite, with an alias for the cluster's name too."""
        document = parse_json(path.read_bytes())
        if document.get("cluster") in self._clusters:
            document["cluster"] = self._alias("cluster", document["cluster"])
        # Write letters beyond ASCII unescaped, because names are not found in escape sequences.
        path.write_bytes(_bytes(json.dumps(document, indent=2, ensure_ascii=False)) + b"\n")
        self.replace_in(path)

    def replace_in_accounting(self, path: Path) -> None:
        """Rewrite the output of `sacct`, with an alias for the cluster's name in Slurm too."""
        self.replace_in(path)
        rows = kept_rows(_text_in(path))
        for row in rows:
            if "Cluster" in row:
                row["Cluster"] = self._alias("cluster", row["Cluster"])
        if rows:
            lines = [list(rows[0]), *(list(row.values()) for row in rows)]
            path.write_bytes(_bytes("".join(f"{'|'.join(line)}\n" for line in lines)))

    def _replaced(self, text: bytes) -> bytes:
        if self._pattern is None:
            self._pattern = self._compiled()
        return self._pattern.sub(self._alias_of, text)

    def _compiled(self) -> re.Pattern[bytes]:
        domains = [re.escape(_bytes(name)) for name in _longest_first(set(map(_domain, self._hosts)) - {""})]
        suffix = rb"(?:\.(?:%s)|(?:\.[A-Za-z0-9-]+){2,})?" % b"|".join(domains or [rb"(?!)"])
        hosts = [re.escape(_bytes(name)) + suffix for name in _longest_first(self._hosts)]
        # The names of a node's siblings follow from its own: same beginning, another number of as many digits.
        numbered = {match.groups() for name in self._hosts if (match := _NUMBERED.fullmatch(name))}
        self._families = {(prefix, len(number)) for prefix, number in numbered if len(prefix) > 1}
        hosts += [
            rb"%s\d{%d}%s" % (re.escape(_bytes(prefix)), width, suffix) for prefix, width in sorted(self._families)
        ]
        self._known = {name.lower(): name for name in self._hosts}
        # A known name with a number is not a word of a log, so it is also found within a longer name and in capitals.
        # GPU0 and X1 are words of a log.
        nodes: dict[str, list[str]] = {}
        for name in _longest_first(self._hosts):
            if (parts_of := _NUMBERED.fullmatch(name)) and (len(name) > 4 or len(parts_of[2]) > 1):
                nodes.setdefault(parts_of[1], []).append(parts_of[2])
        within = [
            rb"(?i:%s)(?:%s)%s" % (re.escape(_bytes(prefix)), "|".join(numbers).encode(), suffix)
            for prefix, numbers in nodes.items()
        ]
        hosts += [rb"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.%s" % domain for domain in domains]
        users = [_as_word(name) for name in _longest_first(self._users | self._owners)]
        parts = {
            "mail": _MAIL,
            "mac": _MAC,
            "home": _HOMES.pattern,
            "list": rb"(?<![A-Za-z0-9.-])%s" % _BRACKETED,
            "host": rb"(?<![A-Za-z0-9.-])(?:%s)(?![A-Za-z0-9])|(?<![A-Za-z0-9])(?i:%s)(?![A-Za-z0-9])"
            % (b"|".join(hosts or [rb"(?!)"]), b"|".join(within or [rb"(?!)"])),
            "user": b"|".join(users or [rb"(?!)"]),
            "ipv4": _IPV4,
            "ipv6": _IPV6,
        }
        return re.compile(b"|".join(b"(?P<%s>%s)" % (name.encode(), part) for name, part in parts.items()))

    def _alias_of(self, match: re.Match[bytes]) -> bytes:
        name, kind = _text(match[0]), match.lastgroup
        if kind == "home":
            return self._alias_of_home(match)
        if kind == "list":
            return _bytes(self._alias_of_list(name))
        if kind in ("ipv4", "ipv6"):
            try:
                address = ipaddress.ip_address(name)
            except ValueError:
                return match[0]
            address = getattr(address, "ipv4_mapped", None) or address
            kept = address.is_loopback or address.is_unspecified
            return match[0] if kept else self._alias("address", str(address)).encode()
        kinds = {"host": "host", "user": "user", "mail": "mail", "mac": "address"}
        if kind == "host":
            name = self._known.get(name.partition(".")[0].lower(), name)
        return self._alias(kinds[kind or ""], name).encode()

    def _alias_of_home(self, match: re.Match[bytes]) -> bytes:
        """Alias of a home path. A directory below a group's directory may be a person's too."""
        owner, below = _text(match["owner"]), _text(match["below"] or b"")
        common = owner.lower() in _COMMON
        home = match.string[match.start() : match.end("owner")] if common else b"/home/" + self._user(owner)
        if not below:
            return home
        persons = common or match["bucket"] or owner in self._users
        if persons or len(below) == 1 or below.lower() in _COMMON | _NO_PERSON:
            return home + b"/" + self._replaced(match["below"])
        return home + b"/" + self._user(below)

    def _user(self, name: str) -> bytes:
        return self._alias("user", name).encode()

    def _alias_of_list(self, text: str) -> str:
        """Aliases for Slurm's short form of nodes, if one of them is known or has the name of a known family."""
        *plain, rest = text.split(",", text.partition("[")[0].count(","))
        before = "".join(f"{name}," for name in plain)
        names: tuple[str, ...] = ()
        with contextlib.suppress(ValueError):
            names = expand(rest)
        if any(map(self._is_host, names)):
            aliases = (self._alias("host", name) for name in names[:MOST_NODES])
            return self._outside_brackets(before) + ",".join(aliases)
        head, dash, tail = _after_dash(rest)
        if dash:
            return self._outside_brackets(before + head + dash) + self._alias_of_list(tail)
        return self._outside_brackets(before + rest)

    def _outside_brackets(self, text: str) -> str:
        """The text with aliases for all names outside of brackets."""
        pieces = re.split(r"(\[[0-9,-]+\])", text)
        pieces[::2] = [_text(self._replaced(_bytes(piece))) for piece in pieces[::2]]
        return "".join(pieces)

    def _is_host(self, name: str) -> bool:
        numbered = _NUMBERED.fullmatch(name)
        return name in self._hosts or (numbered is not None and (numbered[1], len(numbered[2])) in self._families)

    def _alias(self, kind: str, name: str) -> str:
        known = self._aliases.setdefault(kind, {})
        return known.setdefault(name, f"{kind}-{len(known) + 1}")

    def _add_nodes(self, node_list: str) -> None:
        with contextlib.suppress(ValueError):
            self._hosts.update(expand(node_list))

    def _add_host(self, name: str) -> None:
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(name)
            return
        self._add(self._hosts, name)
        if "." in name:
            self._add(self._hosts, name.partition(".")[0])

    def _add(self, names: set[str], name: str | None) -> None:
        if name and len(name) > 1 and name.lower() not in _COMMON and not name.isdigit():
            names.add(name)


def _after_dash(text: str) -> tuple[str, str, str]:
    """Text up to the first `-` or `.` before the bracket, that sign, and the rest: `slurm-cn[1-2]` may be both."""
    match = re.match(r"([A-Za-z0-9]*)([.-])(?=[A-Za-z])(.*)", text)
    return (match[1], match[2], match[3]) if match and "[" in match[3] else (text, "", "")


def _domain(host: str) -> str:
    """Common domain of its neighbours; empty for a short name."""
    return host.partition(".")[2] if host.count(".") >= 2 else ""


def _as_word(name: str) -> bytes:
    """Pattern for the name as a separate word; a short name may not touch an underscore either, as in `max_steps`."""
    word_characters = b"A-Za-z0-9" if len(name) > 4 else b"A-Za-z0-9_"
    return rb"(?<![%s])%s(?![%s])" % (word_characters, re.escape(_bytes(name)), word_characters)


def _text_in(path: Path) -> str:
    """Text of a file, empty if it does not exist. Bytes that are not UTF-8 survive `_bytes`."""
    with explained_errors("read", path):
        return _text(path.read_bytes()) if path.is_file() else ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _longest_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (-len(name), name))


def _lines(file: Iterable[bytes]) -> Iterable[bytes]:
    """Complete lines, many at a time."""
    pieces, size = [], 0
    for line in file:
        pieces.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(pieces)
            pieces, size = [], 0
    yield b"".join(pieces)
