"""`SlurmProfile`: the saved settings of a cluster with Slurm. A profile never holds a secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from llmb_tui.cluster.login_profile import Transport
from llmb_tui.cluster.profile import LATER, PrivateNames

GpuRequest = Literal["gres", "gpus-per-node", "none"]

LOCAL = "local"
"""Name of the cluster whose login node is this machine, unless a saved cluster has this name."""


@dataclass(frozen=True, slots=True)
class SlurmProfile:
    """One saved cluster with Slurm."""

    kind: ClassVar[str] = "slurm"
    can_suspend: ClassVar[bool] = False
    """Whether its users may suspend jobs."""
    no_login_node: ClassVar[str] = ""
    """Reason why commands cannot run on a login node; empty, because there is one."""

    name: str
    host: str
    """Host name, address or alias (of the user's OpenSSH configuration) of the login node."""
    account: str
    partition: str
    """Partition, or several with commas; empty: jobs name none, and Slurm or the site chooses."""
    install_dir: str
    """Absolute path on the cluster's shared file system; `$LLMB_INSTALL` of the recipes."""
    transport: Transport = "ssh"
    """`local`: this machine is the login node, and `host` is only its name on screens."""
    port: int | None = None
    """Port; None: from the OpenSSH configuration, or 22."""
    user: str | None = None
    """User; None: from the OpenSSH configuration, or the local user's name."""
    identity_file: str | None = None
    """Private key; None: keys of the OpenSSH configuration, of the agent, and the default keys."""
    known_hosts: str | None = None
    """File of known host keys; None: from the OpenSSH configuration, or `~/.ssh/known_hosts`."""
    ssh_config: str | None = None
    """OpenSSH configuration file to read instead of the user's own; `none`: read no configuration."""
    cpu_partition: str | None = None
    """Partition for work without GPUs, such as importing an image; None: there is none."""
    gpu_request: GpuRequest = "gpus-per-node"
    gpu_type: str | None = field(default=None, metadata=LATER)
    """Type in the request, as Slurm names it, such as `h100`; None: a job requests GPUs of any type."""
    mpi: str | None = field(default=None, metadata=LATER)
    """Type of `srun --mpi`, such as `pmi2`; None: the recipe's, which is `pmix`."""
    reservation: str | None = None
    qos: str | None = None
    constraint: str | None = None
    segment: int | None = None
    """Nodes in a block that NVLink connects, for `sbatch --segment` of Slurm 24.05 and later."""
    exclude: str | None = None
    """Nodes that must not be used, as a Slurm host list such as `cn[003,007]`."""
    slurm_params: str | None = None
    """Additional options in the recipes' `ADDITIONAL_SLURM_PARAMS` grammar: `key=value;key=value;flag`."""
    mounts: tuple[str, ...] = ()
    """Additional container mounts, each `SOURCE:TARGET` or `SOURCE:TARGET:FLAGS`."""
    env: tuple[tuple[str, str], ...] = ()
    """Additional environment variables of the training, (name, value); no secrets."""
    memory: str = "0"
    """Memory of each node, for `sbatch --mem`, such as `500G`; `0` is all of it."""
    cpus_per_task: int = 0
    """Number of CPUs to which Slurm pins each task, instead of NUMA binding; 0: tasks are not pinned."""
    numa_binding: bool = True
    """Whether tasks are bound to NUMA nodes if the recipe does so."""
    vboost: bool = False
    """Whether a job first gives the GPUs' tensor cores more power, which needs `sudo` on the nodes."""
    group_writable: bool = False
    """Whether the group may write to files of the install, for an install that users share; others never may."""
    read_only: bool = False
    """Read-only: nothing is submitted, cancelled, installed or otherwise changed there."""
    notice: str | None = None
    """Text to show next to the cluster's name, such as `simulated, clock x30`."""

    @property
    def place(self) -> str:
        """Destination of the connection, in ssh's notation."""
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.host}{f':{self.port}' if self.port else ''}"

    @property
    def share(self) -> str:
        """Partition and account of its jobs."""
        return f"partition {self.partition}, account {self.account}" if self.partition else f"account {self.account}"

    @property
    def typed_gpu_request(self) -> str:
        """Way in which jobs request GPUs, followed by a colon and the type if there is one: `gres:h100`."""
        return f"{self.gpu_request}:{self.gpu_type}" if self.gpu_type else self.gpu_request

    @property
    def directory(self) -> str:
        """Install directory, which persists between jobs."""
        return self.install_dir

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that its jobs name; none if Slurm or the site chooses."""
        return tuple(self.partition.split(",")) if self.partition else ()

    @property
    def names(self) -> PrivateNames:
        """Login node, user and excluded nodes."""
        user, _, host = self.host.rpartition("@")
        return PrivateNames(host, self.user or user, self.exclude or "")

    @property
    def umask(self) -> str:
        """Argument of sh's `umask`, which replaces that of the login."""
        return "g=rwx,o-w" if self.group_writable else "go-w"

    @property
    def route(self) -> tuple[object, ...]:
        """All values that decide the host and the user of a connection. Profiles with the same route share one."""
        if self.transport == "local":
            return ("local",)
        return (self.host, self.port, self.user, self.identity_file, self.known_hosts, self.ssh_config)
