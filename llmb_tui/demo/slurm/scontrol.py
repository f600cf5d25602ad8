"""`scontrol`: details of jobs, nodes and partitions, host lists, and requeueing."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable

from llmb_tui.demo.slurm import facts, hostlist, times
from llmb_tui.demo.slurm.job import PENDING, RUNNING, Job
from llmb_tui.demo.slurm.options import Parser, Refusal
from llmb_tui.demo.slurm.store import Store

OPTIONS = "all/a details/d oneliner/o quiet/Q verbose/v version/V"


def main(store: Store, arguments: list[str]) -> int:
    """Run `scontrol`."""
    asked = Parser("scontrol", OPTIONS).parse(arguments)
    if "version" in asked:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    verb, *words = asked.operands or ("",)
    if verb == "ping":
        sys.stdout.write(f"Slurmctld(primary) at {platform.node()} is UP\n")
        return 0
    if verb == "requeue":
        return _requeue(store, words)
    if verb != "show":
        raise Refusal(f"invalid keyword: {verb}")
    if not words:
        raise Refusal("too few arguments for keyword:show")
    entity, _, value = words[0].partition("=")
    value = value or " ".join(words[1:2])
    show = _ENTITIES.get(entity.lower())
    if show is None:
        raise Refusal(f"invalid entity:{entity} for keyword:show ")
    sys.stdout.write(_oneline(show(store, value)) if "oneliner" in asked else show(store, value))
    return 0


def _oneline(text: str) -> str:
    records = [record for record in text.split("\n\n") if record.strip()]
    return "".join(re.sub(r"\n\s*", " ", record.strip()) + " \n" for record in records)


def _requeue(store: Store, words: list[str]) -> int:
    from llmb_tui.demo.slurm.runner import start_runner  # noqa: PLC0415  # only this verb pays for it

    if not words:
        raise Refusal("too few arguments for keyword:requeue")
    known = {str(job.id): job for job in store.remembered()}
    for word in words[0].split(","):
        if not (job := known.get(word)):
            raise Refusal(f"Invalid job id specified for job {word}")
        if not job.requeue:
            raise Refusal(f"Requested operation is presently disabled for job {word}")
        if job.state == PENDING:
            raise Refusal(f"Job is pending execution for job {word}")
        if not job.active:
            start_runner(store, job.id, store.revive(job.id), again=True)
            continue
        with store.change(job.id) as changed:
            if changed.state == RUNNING:
                changed.requeue_wanted = True
    return 0


def _jobs(store: Store, value: str) -> str:
    jobs = [job for job in store.remembered() if value in ("", str(job.id))]
    if value and not jobs:
        raise Refusal("slurm_load_jobs error: Invalid job id specified")
    return "".join(_job(job) for job in jobs) if jobs else "No jobs in the system\n"


def _moment(moment: float | None) -> str:
    return "Unknown" if moment is None else times.stamp(moment)


def _job(job: Job) -> str:
    limit = job.minutes * 60
    end = job.started + limit if job.started is not None and job.ended is None else job.ended
    output = job.fill(job.output)
    gpus = f"   TresPerNode=gres:gpu:{job.gpus_per_node}\n" if job.gpus_per_node else ""
    batch_host = f"   BatchHost={job.node_names[0]}\n" if job.node_names else ""
    return (
        f"JobId={job.id} JobName={job.name}\n"
        f"   UserId={job.user}({job.uid}) GroupId={job.user}({os.getgid()}) MCS_label=N/A\n"
        f"   Priority={4294901760 - job.id} Nice=0 Account={job.account} QOS={facts.QOS}\n"
        f"   JobState={job.shown_state} Reason={job.reason} Dependency=(null)\n"
        f"   Requeue={int(job.requeue)} Restarts={job.restarts} BatchFlag={int(job.command != '(null)')} Reboot=0"
        f" ExitCode={job.exit_code}:{job.signal}\n"
        f"   RunTime={times.full(job.elapsed())} TimeLimit={times.full(limit)} TimeMin=N/A\n"
        f"   SubmitTime={times.stamp(job.created)} EligibleTime={times.stamp(job.created)}\n"
        f"   AccrueTime={times.stamp(job.created)}\n"
        f"   StartTime={_moment(job.started)} EndTime={_moment(end)} Deadline=N/A\n"
        f"   SuspendTime=None SecsPreSuspend=0 LastSchedEval={times.stamp(job.created)} Scheduler=Main\n"
        f"   Partition={job.partition} AllocNode:Sid=127.0.0.1:1\n"
        f"   ReqNodeList=(null) ExcNodeList=(null)\n"
        f"   NodeList={job.node_list}\n"
        f"{batch_host}"
        f"   NumNodes={job.nodes} NumCPUs={job.cpus} NumTasks={job.tasks} CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n"
        f"   TRES={job.tres}\n"
        f"   Socks/Node=* NtasksPerN:B:S:C={job.tasks_per_node}:0:*:* CoreSpec=*\n"
        f"   MinCPUsNode={job.tasks_per_node} MinMemoryNode=0 MinTmpDiskNode=0\n"
        f"   Features=(null) DelayBoot=00:00:00\n"
        f"   OverSubscribe=NO Contiguous=0 Licenses=(null) Network=(null)\n"
        f"   Command={job.command}\n"
        f"   WorkDir={job.work_dir}\n"
        f"   StdErr={job.fill(job.error) if job.error else output}\n"
        f"   StdIn=/dev/null\n"
        f"   StdOut={output}\n"
        f"   Power=\n"
        f"{gpus}\n"
    )


def _nodes(store: Store, value: str) -> str:
    names = hostlist.expand(value) if value else list(facts.NODES)
    missing = [name for name in names if name not in facts.NODES]
    if missing:
        raise Refusal(f"Node {missing[0]} not found")
    with store.locked():
        busy = store.busy()
    return "".join(_node(name, busy=name in busy) for name in names)


def _node(name: str, *, busy: bool) -> str:
    cpus, memory, gpus = facts.CPUS_PER_NODE, facts.MEMORY_MB, facts.GPUS_PER_NODE
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket={cpus // 2} \n"
        f"   CPUAlloc={cpus * busy} CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.00\n"
        f"   AvailableFeatures=(null)\n"
        f"   ActiveFeatures=(null)\n"
        f"   Gres={facts.GRES}\n"
        f"   NodeAddr=127.0.0.1 NodeHostName={name} Version={facts.VERSION}\n"
        f"   RealMemory={memory} AllocMem={memory * busy} FreeMem={memory} Sockets=2 Boards=1\n"
        f"   State={'ALLOCATED' if busy else 'IDLE'} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n"
        f"   Partitions={','.join(partition.name for partition in facts.PARTITIONS)} \n"
        f"   CfgTRES=cpu={cpus},mem={memory}M,billing={cpus},gres/gpu={gpus}\n"
        f"   AllocTRES={f'cpu={cpus},mem={memory}M,gres/gpu={gpus}' if busy else ''}\n"
        f"   Comment=simulated\n\n"
    )


def _partitions(_: Store, value: str) -> str:
    chosen = [partition for partition in facts.PARTITIONS if value in ("", partition.name)]
    if not chosen:
        raise Refusal(f"Partition {value} not found")
    return "".join(_partition(partition) for partition in chosen)


def _partition(partition: facts.Partition) -> str:
    nodes = len(facts.NODES)
    cpus, memory = nodes * facts.CPUS_PER_NODE, nodes * facts.MEMORY_MB
    return (
        f"PartitionName={partition.name}\n"
        f"   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL\n"
        f"   AllocNodes=ALL Default={'YES' if partition.default else 'NO'} QoS=N/A\n"
        f"   DefaultTime={times.full(partition.default_minutes * 60)} DisableRootJobs=NO ExclusiveUser=NO GraceTime=0"
        f" Hidden=NO\n"
        f"   MaxNodes={partition.max_nodes or 'UNLIMITED'} MaxTime={times.full(partition.max_minutes * 60)} MinNodes=0"
        f" LLN=NO MaxCPUsPerNode=UNLIMITED\n"
        f"   Nodes={hostlist.compress(facts.NODES)}\n"
        f"   PriorityJobFactor=1 PriorityTier={partition.priority_tier} RootOnly=NO ReqResv=NO"
        f" OverSubscribe=EXCLUSIVE\n"
        f"   OverTimeLimit=NONE PreemptMode=OFF\n"
        f"   State=UP TotalCPUs={cpus} TotalNodes={nodes} SelectTypeParameters=NONE\n"
        f"   JobDefaults=(null)\n"
        f"   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n"
        f"   TRES=cpu={cpus},mem={memory}M,node={nodes},billing={cpus},gres/gpu={nodes * facts.GPUS_PER_NODE}\n\n"
    )


def _config(store: Store, _: str) -> str:
    values = {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "ClusterName": facts.CLUSTER,
        "EnforcePartLimits": "ALL",
        "GresTypes": "gpu",
        "JobRequeue": "1",
        "KillWait": f"{round(facts.KILL_WAIT_S * store.speed)} sec",
        "MinJobAge": f"{facts.MIN_JOB_AGE_S} sec",
        "MpiDefault": "pmix",
        "PlugStackConfig": "/etc/slurm/plugstack.conf",
        "SelectType": "select/cons_tres",
        "SLURM_VERSION": facts.VERSION,
    }
    lines = [f"{name:<23} = {value}" for name, value in values.items()]
    return "Configuration data of a simulated cluster\n" + "\n".join(lines) + "\n\n"


def _host_names(_: Store, value: str) -> str:
    names = hostlist.expand(value or os.environ.get("SLURM_JOB_NODELIST", ""))
    if not names:
        sys.stderr.write("scontrol: error: host list is empty\n")
    return "".join(f"{name}\n" for name in names)


def _host_list(_: Store, value: str) -> str:
    return hostlist.compress(value.split(",")) + "\n"


_ENTITIES: dict[str, Callable[[Store, str], str]] = {
    "config": _config,
    "hostlist": _host_list,
    "hostname": _host_names,
    "hostnames": _host_names,
    "job": _jobs,
    "jobid": _jobs,
    "jobs": _jobs,
    "node": _nodes,
    "nodes": _nodes,
    "partition": _partitions,
    "partitions": _partitions,
}
