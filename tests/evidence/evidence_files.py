"""Archives unpacked and packed again, with common tools."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from llmb_tui.evidence.manifest import Manifest, Member
from llmb_tui.evidence.pack import pack, sum_of, unpack

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SEAL = 40
"""Number of bytes after the frame."""


def tar_of(archive: bytes) -> bytes:
    """Unpacked content of an archive."""
    return zstd.decompress(archive[:-SEAL])


def packed(tar: bytes, *, checksum: bool = True) -> bytes:
    """Archive of a tar file, with a correct checksum of its own."""
    options: dict[Any, int] = {zstd.CompressionParameter.checksum_flag: int(checksum)}
    frame = zstd.compress(tar, options=options)
    return sealed(frame)


def sealed(frame: bytes) -> bytes:
    """Frame with its checksum appended."""
    return frame + b"\x5e\x2a\x4d\x18" + (32).to_bytes(4, "little") + hashlib.sha256(frame).digest()


def members(tar: bytes) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Headers of the tar file, each with its content."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as file:
        return [(info, (file.extractfile(info) or io.BytesIO()).read()) for info in file]


def tar_with(contents: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """Tar file with these members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as file:
        for info, data in contents:
            file.addfile(info, io.BytesIO(data))
    content = out.getvalue().rstrip(b"\0")
    return content + b"\0" * (-len(content) % 512 + 1024)


def forged(archive: Path, folder: Path, change: Callable[[Path], None]) -> Path:
    """Archive with changed content and correct checksums."""
    inside = folder / "inside"
    inside.mkdir(parents=True)
    manifest = unpack(archive, inside)
    change(inside)
    return written(manifest, inside, folder / "forged.tar.zst")


def written(manifest: Manifest, inside: Path, file: Path) -> Path:
    """Archive of a folder with new checksums."""
    found = {member.name: Member(member.name, *sum_of(inside / member.name)) for member in manifest.members}
    presets = tuple(replace(preset, sha256=found[preset.name].sha256) for preset in manifest.presets)
    with file.open("wb") as out:
        pack(replace(manifest, members=tuple(found.values()), presets=presets).sealed(), inside, out)
    return file
