"""Answers of a working cluster to a preflight, which tests change."""

from __future__ import annotations

from llmb_tui.cluster.batch import Answer
from llmb_tui.preflight.check_group import Answers
from llmb_tui.preflight.scheduler import PYXIS_OPTIONS

PARTITION_22_05 = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   MaxNodes=UNLIMITED MaxTime=04:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   State=UP TotalCPUs=448 TotalNodes=4 SelectTypeParameters=NONE
"""
PARTITION_20_11 = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=04:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=node[001-010]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=1120 TotalNodes=10 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
"""
PARTITION_25_05 = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO ExclusiveTopo=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=04:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED
   Nodes=node[001-010]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=1120 TotalNodes=10 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=1120,mem=20000000M,node=10,billing=1120,gres/gpu=80
"""
CONFIG = """\
AccountingStorageEnforce = associations,limits,qos
ClusterName             = eos
PlugStackConfig         = (null)
SelectType              = select/cons_tres
"""
SLURM: Answers = {
    "version": Answer(0, "slurm 23.11.4\n"),
    "ping": Answer(0, "Slurmctld(primary) at ctl is UP\n"),
    "config": Answer(0, CONFIG),
    "partition": Answer(0, PARTITION_22_05),
    "nodes": Answer(
        0,
        "batch|batch*|up|4:00:00|6|mixed|gpu:h100:8|(null)\nbatch|batch*|up|4:00:00|4|idle|gpu:h100:8|(null)\n",
    ),
    "architectures": Answer(0, "10|x86_64|batch,debug\n"),
    "machine": Answer(0, "x86_64\n"),
    "who": Answer(0, "me\nusers bench\n"),
    "associations": Answer(0, "eos|llmbench||normal,short|normal\neos|other||normal|\n"),
    "qos": Answer(0, "normal||||||\nshort|DenyOnLimit|00:10:00||gres/gpu=8||\n"),
    "reservations": Answer(0, "No reservations in the system\n"),
    "exclude": Answer(1, ""),
    "trial": Answer(
        0,
        "sbatch: Job 1 to start at 2026-11-21T11:37:03 using 448 processors on nodes cn[001-008] in partition batch\n",
    ),
    "srun": Answer(0, "Usage: srun ...\n" + "".join(f"      {option}\n" for option in PYXIS_OPTIONS)),
    "plugstack": Answer(0, "required /usr/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis\n"),
    "mpi": Answer(
        0, "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n"
    ),
    "pmix": Answer(0, "srun: Job 2 to start at 2026-11-21T11:37:03 using 1 processors on nodes cn001\n"),
}

DF = "Filesystem     1024-blocks      Used Available Capacity Mounted on\nlustre 9 8 {} 25% /lustre/a b\n"
INODES = "Filesystem       Inodes  IUsed    IFree IUse% Mounted on\nlustre         16777216 445312 {} 3% /lustre/a b\n"
LOGIN_NODE: Answers = {
    "install": Answer(0, "/lustre/llmb\nwritable\n"),
    "image": Answer(1, ""),
    "df": Answer(0, DF.format(10**9)),
    "inodes": Answer(0, INODES.format(10**7)),
    "quota": Answer(0, ""),
    "lfs": Answer(127, "sh: lfs: not found\n"),
    "set_up": Answer(1, ""),
    "enroot": Answer(
        0,
        "3.5.0\nENROOT_TEMP_PATH /raid/tmp\nENROOT_ROOTFS_WRITABLE yes\nENROOT_REMAP_ROOT y\n"
        f"free {10**9} /raid/tmp\nsite /etc/enroot\nhook\nadapters NCCL_IB_HCA\n",
    ),
    "python": Answer(0, "python python3.12 3.12.4\nbare python3 3.9.18\n"),
    "modules": Answer(0, "python/3.11.4\npython/3.13\n"),
}

HEAD = f"{'5' * 40}\tHEAD"
"""Output of `git ls-remote`."""
NETWORK: Answers = {
    "image": Answer(1, ""),
    "set_up": Answer(1, ""),
    "brought": Answer(0, ""),
    "enroot": Answer(0, "/usr/bin/enroot\n"),
    "probe": Answer(0, f"hub HTTP 200\nregistry HTTP 401\ngit {HEAD}\n"),
}
