"""`entry_script`: the file of ours that runs in the containers, and where it is installed on a cluster."""

from __future__ import annotations

import hashlib

from llmb_tui.cluster.remote_text import remote_text


def entry_script() -> str:
    """Text of `remote/pretrain.py`."""
    return remote_text("pretrain.py")


def entry_path(install_dir: str) -> str:
    """Where it is installed; its name holds a hash of its text, so that a newer one never replaces an older."""
    digest = hashlib.sha256(entry_script().encode()).hexdigest()[:12]
    return f"{install_dir.rstrip('/')}/.llmb-tui/code/pretrain-{digest}.py"
