"""`LoginProfile`: the part of a cluster's profile that a connection to its login node needs, for any scheduler."""

from __future__ import annotations

from typing import Literal, Protocol

from llmb_tui.cluster.profile import ClusterProfile

Transport = Literal["ssh", "local"]

NO_SSH_CONFIG = "none"
"""Value of `ssh_config` that means: read no OpenSSH configuration at all."""


class LoginProfile(ClusterProfile, Protocol):
    """A saved cluster with a login node."""

    @property
    def host(self) -> str:
        """Host name, address or alias (of the user's OpenSSH configuration) of the login node."""

    @property
    def transport(self) -> Transport:
        """`local`: this machine is the login node, and `host` is only its name on screens."""

    @property
    def port(self) -> int | None:
        """None: the port of the OpenSSH configuration, or 22."""

    @property
    def user(self) -> str | None:
        """None: the user of the OpenSSH configuration, or the local user's name."""

    @property
    def identity_file(self) -> str | None:
        """Private key; None: the OpenSSH configuration's, the agent's and the default keys."""

    @property
    def known_hosts(self) -> str | None:
        """File of known host keys; None: the user's own."""

    @property
    def ssh_config(self) -> str | None:
        """OpenSSH configuration to read instead of the user's own; `NO_SSH_CONFIG`: none."""

    @property
    def install_dir(self) -> str:
        """Absolute path on the cluster's shared file system; `$LLMB_INSTALL` of the recipes."""

    @property
    def umask(self) -> str:
        """Argument of sh's `umask` for files made in the install directory."""
