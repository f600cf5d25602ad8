"""Files of revoked host keys (RevokedHostKeys): OpenSSH's own lists (KRL), or public keys as text."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path

from llmb_tui.cluster.ssh.wire import Fields
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line

_MAGIC = b"SSHKRL\n\0"
_DEADLINE_S = 10.0
_OK, _REVOKED = 0, 1
"""Exit codes of `ssh-keygen -Q`."""


def is_revoked(file: Path, keys: Sequence[bytes]) -> bool:
    """Whether a file revokes one of these public keys or certificates.

    Raises LlmbError if the file cannot be read or checked: as in `ssh`, no key can be trusted then.
    """
    try:
        data = file.read_bytes()
        if data.startswith(_MAGIC):
            return any(_listed(file, key) for key in keys)
        return any(_named(data, key) for key in keys)
    except (OSError, subprocess.SubprocessError) as error:
        raise LlmbError(
            f"Could not check the host key with {clean_line(str(file))}.",
            f"{clean_line(getattr(error, 'strerror', None) or str(error))}.",
            "Fix this file of revoked keys, or RevokedHostKeys in the OpenSSH configuration.",
        ) from error


def _listed(file: Path, key: bytes) -> bool:
    """Ask `ssh-keygen`, which alone reads its lists. Raises OSError and SubprocessError."""
    line = b"%s %s\n" % (Fields(key).string(), base64.b64encode(key))
    command = ["ssh-keygen", "-Q", "-f", str(file), "/dev/stdin"]
    end = subprocess.run(command, check=False, input=line, capture_output=True, timeout=_DEADLINE_S)
    if end.returncode not in (_OK, _REVOKED):
        raise OSError(0, end.stderr.decode(errors="replace").strip().rstrip("."))
    return end.returncode == _REVOKED


def _named(data: bytes, key: bytes) -> bool:
    encoded = base64.b64encode(key)
    return any(encoded in line.split() for line in data.splitlines() if not line.startswith(b"#"))
