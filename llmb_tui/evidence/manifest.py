"""`Manifest`: every member of an archive with its checksum, and the missing evidence; sealed by its own checksum."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.text import clean_line, plural
from llmb_tui.store import documents

SCHEMA = 1
KIND = "llmb-tui evidence"
MANIFEST = "manifest.json"
"""Name of the first member."""
MOST_MEMBERS = 20_000
_MOST_TEXT = 64 << 20
"""Maximum number of bytes of a member that is not a log and is read as a whole."""
_MOST_PRESET = 4 << 20
LEFT_OUT = ("profiles", "traces", "checkpoints", "notes and tags")

_OF_RUN = r"(?:run|plan|settings|environment|result|beside|log|facts)\.json|script\.sh|(?:accounting|network)\.txt"
_LOG = r"log(?:\.\d{1,6})?(?:-\d{1,6})?"
_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,79}"
_NAME = re.compile(
    rf"runs/(?P<run>[a-z0-9]{{1,64}})/(?:{_OF_RUN}|(?P<log>{_LOG}))"
    rf"|presets/(?:constraints/{_WORD}|(?!constraints\Z){_WORD})|suites/{_WORD}"
)


class ArchiveError(LlmbError):
    """The file is not an archive of this program, or is damaged. Exit code 1."""

    def __init__(self, why: str, fix: str = "Get the file again from its author.") -> None:
        super().__init__("This file is not a valid archive of llmb-tui.", why, fix, exit_code=1)


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive."""

    name: str
    size: int
    """Size in bytes."""
    sha256: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Evidence that is not in the archive."""

    run: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class PresetMember:
    """Preset of a recipe, in the version of the program that made the archive."""

    recipe: str
    """`<workload>@<release>`."""
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of an archive; the members are in the order of the archive."""

    kind: str
    schema: int
    made_by: str
    """Name and version of the program."""
    anonymous: bool
    """Host and user names, addresses and home paths were replaced."""
    threshold: float
    """Smallest ratio that passes, for the verdicts in the archive."""
    runs: tuple[str, ...]
    suites: tuple[str, ...]
    presets: tuple[PresetMember, ...]
    missing: tuple[Missing, ...]
    left_out: tuple[str, ...]
    """Kinds of files that are never in an archive."""
    members: tuple[Member, ...]
    seal: str = ""
    """SHA-256 of the manifest's text with an empty seal."""

    @property
    def text(self) -> bytes:
        """Text of the manifest in the archive."""
        return json.dumps(asdict(self), indent=1).encode() + b"\n"

    def sealed(self) -> Manifest:
        return replace(self, seal=hashlib.sha256(replace(self, seal="").text).hexdigest())


def read_manifest(text: bytes, folder: Path) -> Manifest:
    """Read and check a manifest, and save its text in a private folder. Raises ArchiveError for an invalid one."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ArchiveError(
            "Its first member is not a manifest of this program.", "Name a file that `export` has written."
        )
    if document.get("schema") != SCHEMA:
        schema = clean_line(str(document.get("schema")))[:20]
        raise ArchiveError(
            f"It has format {schema}, but this version reads format {SCHEMA}.",
            "Verify it with the version of llmb-tui that made it, or a newer one.",
        )
    path = folder / MANIFEST
    path.write_bytes(text)
    try:
        manifest = documents.load(path, Manifest)
    except LlmbError as error:
        raise ArchiveError(f"Its manifest cannot be read: {error.why}") from error
    if manifest.text != text or manifest.sealed() != manifest:
        raise ArchiveError("The manifest's own checksum is wrong: it was changed or damaged.")
    _check_names(manifest)
    return manifest


def _check_names(manifest: Manifest) -> None:
    """Raise ArchiveError for members that no archive of this program has, and for listed members that are missing."""
    if len(manifest.members) > MOST_MEMBERS or any(member.size < 0 for member in manifest.members):
        count = plural(len(manifest.members), "member")
        raise ArchiveError(f"Its manifest lists {count}, or one of an invalid size.")
    runs, names = set(manifest.runs), set[str]()
    for member in manifest.members:
        name, shown = member.name, clean_line(member.name)[:80]
        match = _NAME.fullmatch(name)
        if name.startswith("/") or ".." in name.split("/"):
            raise ArchiveError(f"A member would be written outside the folder: {shown}. Nothing was unpacked.")
        if match is None:
            raise ArchiveError(f"It has a member that no archive of llmb-tui has: {shown}")
        if match["run"] is not None and match["run"] not in runs:
            raise ArchiveError(f"It has a member of a run that it does not list: {shown}")
        if name in names:
            raise ArchiveError(f"Its manifest lists a member twice: {shown}")
        most = _MOST_PRESET if name.startswith("presets/") else _MOST_TEXT
        if match["log"] is None and member.size > most:
            raise ArchiveError(f"{shown} is too large for such a file: {byte_size(member.size)}.")
        names.add(name)
    listed = [f"runs/{run}/run.json" for run in manifest.runs]
    listed += [f"suites/{suite}.json" for suite in manifest.suites]
    listed += [preset.name for preset in manifest.presets]
    if len(runs) < len(manifest.runs) or not names.issuperset(listed):
        missing = next((name for name in listed if name not in names), "a run that is listed twice")
        raise ArchiveError(f"It lacks a file that its manifest lists: {clean_line(missing)[:80]}")
