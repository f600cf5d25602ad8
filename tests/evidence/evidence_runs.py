"""Finished runs, as a state directory has them, with real batch scripts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from llmb_tui.cluster.job import Job
from llmb_tui.cluster.slurm.accounting import STORED_COLUMNS
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.evidence.export import Exporter
from llmb_tui.evidence.manifest import Manifest
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.selection import Selection
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import NEMOTRON, intended_run, request_for
from tests.launch.launch_cases import PROFILE, RUN_ID

USER, HOST, NODE = "alicem", "login7.hpc.example.org", "rhea"
NODES = f"{NODE}[0101-0108]"
ACCOUNTED = 1_760_000_500.0
GOLDEN = Path(__file__).parents[1] / "launch" / "golden"
SITE = replace(PROFILE, host=HOST, user=USER)
"""Cluster of the golden scripts."""


def log_text(seconds: float = 1.98, steps: int = 50) -> str:
    """A log of NeMo 2 with names and addresses of the cluster."""
    head = (
        f"HOSTNAME={NODE}0101\nUSER={USER}\nHOME=/home/{USER}\n"
        f"{NODE}0101:4242:4242 [0] NCCL INFO Bootstrap : Using ib0:10.31.4.17<0>\n"
        f"a warning of /lustre/fsw/{USER}/llmb/x.py, told to {USER}@example.org, fe80::1ff:fe23:4567:890a\n"
        f"cuDNN version 9.1.0.70, NCCL version 2.21.5+cuda12.4\n"
    )
    return head + "".join(
        f"Training epoch 0, iteration {step}/49 | lr: 1e-06 | global_batch_size: 256 | global_step: {step} | "
        f"reduced_train_loss: {11.5 - step / 20:.4f} | train_step_timing in s: {seconds + (step % 5) / 100:.4f} | "
        f"consumed_samples: {256 * (step + 1)}\n"
        for step in range(steps)
    )


def accounting_text(run: Run) -> str:
    """Output of `sacct`."""
    row = {
        **dict.fromkeys(STORED_COLUMNS, "1"),
        "JobID": run.job_ids[-1],
        "User": USER,
        "State": run.job_state or "",
        "NodeList": NODES,
        "WorkDir": f"/home/{USER}",
        "NNodes": str(run.plan.nodes),
        "ElapsedRaw": "300",
        "Cluster": "eos-slurm",
        "JobName": run.job_name,
    }
    return "|".join(STORED_COLUMNS) + "\n" + "|".join(row.values()) + "\n"


class Laptop:
    """State directory of one operator."""

    def __init__(self, folder: Path) -> None:
        self.places = UserPaths(folder / "config", folder / "state")
        self.runs = Runs(self.places)

    def add(
        self,
        run_id: str = RUN_ID,
        log: str | None = None,
        *,
        accounted: bool = True,
        selection: Selection = NEMOTRON,
        profile: SlurmProfile = SITE,
        state: str = "COMPLETED",
        **changes: Any,
    ) -> Run:
        request = request_for(selection, profile)
        job = Job("4711", "", state, nodes=8, elapsed_s=300.0, exit_code="0:0", node_list=NODES)
        run = replace(
            intended_run(request, run_id),
            spec=launch_spec(request, run_id),
            created_at=ACCOUNTED - 500,
            submission="submitted",
            submitted_at=ACCOUNTED - 499,
            job_ids=("4711",),
            job_state=state,
            job=job,
            log_read=True,
        )
        run = replace(run, **changes)
        self.runs.save(run)
        folder = self.runs.folder(run_id)
        script = (GOLDEN / "nemotron4-25.04.sh").read_text().replace(RUN_ID, run_id)
        self.runs.save_script(run_id, script)
        (folder / "log").write_text(log_text() if log is None else log)
        os.utime(folder / "log", (ACCOUNTED, ACCOUNTED))
        if accounted:
            (folder / "accounting.txt").write_text(accounting_text(run))
        return run

    def exporter(self) -> Exporter:
        """Exporter for the runs in this directory."""
        return Exporter(self.runs, [SITE], self.places.presets, threshold=0.95)

    def export(self, file: Path, *run_ids: str, anonymous: bool = False) -> Manifest:
        """Export these runs to an archive."""
        return self.exporter().export(run_ids or (RUN_ID,), file, anonymous=anonymous)
