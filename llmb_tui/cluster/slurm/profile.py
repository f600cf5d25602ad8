"""`SlurmProfile`: how to reach a login node, and what to ask of the Slurm behind it. It never holds a secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from llmb_tui.cluster.login_profile import Transport
from llmb_tui.cluster.profile import PrivateNames

GpuRequest = Literal["gres", "gpus-per-node", "none"]

LOCAL = "local"
"""Name of the cluster whose login node this machine is, unless a saved one has it."""


@dataclass(frozen=True, slots=True)
class SlurmProfile:
    """One saved cluster with Slurm."""

    kind: ClassVar[str] = "slurm"
    can_suspend: ClassVar[bool] = False
    """Its users may suspend jobs."""
    no_login_node: ClassVar[str] = ""
    """Why nothing can be run on a login node; empty where there is one."""

    name: str
    host: str
    """Host name, address or alias of the login node, as the user's OpenSSH configuration knows it."""
    account: str
    partition: str
    install_dir: str
    """Absolute path on the cluster's shared file system; `$LLMB_INSTALL` of the recipes."""
    transport: Transport = "ssh"
    """`local`: this machine is the login node, and `host` only names it."""
    port: int | None = None
    """None: what the OpenSSH configuration says, or 22."""
    user: str | None = None
    """None: what the OpenSSH configuration says, or the local user's name."""
    identity_file: str | None = None
    """Private key; None: what the OpenSSH configuration says, the agent and the default keys."""
    known_hosts: str | None = None
    """None: what the OpenSSH configuration says, or the user's own `~/.ssh/known_hosts`."""
    ssh_config: str | None = None
    """OpenSSH configuration file to read instead of the user's own; `none`: none at all."""
    cpu_partition: str | None = None
    """Partition for work that needs no GPU, such as importing an image; None: there is none."""
    gpu_request: GpuRequest = "gpus-per-node"
    reservation: str | None = None
    qos: str | None = None
    constraint: str | None = None
    segment: int | None = None
    """Nodes in a block of NVLink-connected ones, for `sbatch --segment`, which Slurm 24.05 and newer know."""
    exclude: str | None = None
    """Nodes that must not be used, as a Slurm host list such as `cn[003,007]`."""
    slurm_params: str | None = None
    """Further options in the recipes' `ADDITIONAL_SLURM_PARAMS` grammar: `key=value;key=value;flag`."""
    mounts: tuple[str, ...] = ()
    """Further container mounts, `SOURCE:TARGET` or `SOURCE:TARGET:FLAGS` each."""
    env: tuple[tuple[str, str], ...] = ()
    """Further environment variables of the training, (name, value); no secrets."""
    memory: str = "0"
    """Memory of each node, for `sbatch --mem`, such as `500G`; `0` is all of it."""
    cpus_per_task: int = 0
    """CPUs that Slurm pins each task to, instead of a binding to NUMA nodes; 0: tasks are not pinned."""
    numa_binding: bool = True
    """Whether tasks are bound to NUMA nodes where the recipe binds them."""
    vboost: bool = False
    """Whether a job first gives the GPUs' tensor cores more power, which takes `sudo` on the nodes."""
    group_writable: bool = False
    """Whether the group may write to what we make there, for an install that several people share; everyone never."""
    read_only: bool = False
    """Observer mode: nothing is submitted, cancelled, installed or otherwise changed there."""
    notice: str | None = None
    """Shown wherever the cluster is named, such as `simulated, clock x30`."""

    @property
    def place(self) -> str:
        """Where it is reached, as ssh would say it."""
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.host}{f':{self.port}' if self.port else ''}"

    @property
    def share(self) -> str:
        """Which part of it runs, and on whose account."""
        return f"partition {self.partition}, account {self.account}"

    @property
    def directory(self) -> str:
        """Where it keeps what lasts."""
        return self.install_dir

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that its jobs may use."""
        return tuple(self.partition.split(","))

    @property
    def names(self) -> PrivateNames:
        """Login node, user and excluded nodes."""
        user, _, host = self.host.rpartition("@")
        return PrivateNames(host, self.user or user, self.exclude or "")

    @property
    def umask(self) -> str:
        """As sh's `umask` takes it, whatever the login has set."""
        return "g=rwx,o-w" if self.group_writable else "go-w"

    @property
    def route(self) -> tuple[object, ...]:
        """All that decides where a connection goes and as whom: profiles with the same route share one."""
        if self.transport == "local":
            return ("local",)
        return (self.host, self.port, self.user, self.identity_file, self.known_hosts, self.ssh_config)
