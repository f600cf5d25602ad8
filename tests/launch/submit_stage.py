"""A cluster over real SSH whose Slurm is a few lines of sh, so that a submission can fail at any point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.launch.direct.delivery import DirectDelivery
from llmb_tui.launch.direct.install import entry_path
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import reconcile, submit_once
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import delivery_of, direct_spec
from tests.launch.launch_cases import MakeRun, replace_command

SCRIPT = "#!/bin/bash\n#SBATCH --nodes=8\n"

US = r"\037"  # separator of the columns

# Jobs are lines of $STAGE/jobs. $STAGE/sbatch runs before a job is accepted, $STAGE/after before the answer.
SLURM = {
    "sbatch": """
. "$STAGE/sbatch"
id=$(($(wc -l <"$STAGE/jobs") + 48123))
echo "$id $(cat "$STAGE/name")" >>"$STAGE/jobs"
. "$STAGE/after"
echo "$id"
""",
    "squeue": f"""
while read -r id name; do
    printf '%s{US}' "$id" PENDING Priority 8 0:00 0 0:0 N/A '' "$name"
    echo
done <"$STAGE/jobs"
""",
    "sacct": "echo 'Slurm accounting storage is disabled' >&2; exit 1",
}


class Stage:
    """A cluster, the stored runs of this machine, and one run to submit."""

    def __init__(self, folder: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.give_up_after(5.0)
        self.folder = folder
        self.cluster = DemoCluster(folder / "cluster")
        self.cluster.start()
        for name, body in SLURM.items():
            replace_command(self.cluster.root, name, body)
        for name in ("jobs", "sbatch", "after"):
            (folder / name).touch()
        self.profile = self.cluster.profile
        self.session = SlurmCluster(self.profile)
        self.session.connect()
        self.runs = Runs(UserPaths(folder / "config", folder / "state"))
        self.journal = Journal(folder / "journal.jsonl")
        self.run = make_run(self.profile)
        self.next_job_is_of(self.run)
        self.task = Path(direct_spec(self.run).task_dir)
        self.place = delivery_of(self.run).place
        self.traces = Path(self.place.folder)
        self.install()

    def give_up_after(self, seconds: float) -> None:
        """Set the longest wait for Slurm's answer, in seconds."""
        self._monkeypatch.setattr(DirectDelivery, "answers_within_s", seconds)

    def close(self) -> None:
        (self.folder / "go").touch()
        self.session.close()
        self.cluster.stop()

    def next_job_is_of(self, run: Run) -> None:
        (self.folder / "name").write_text(run.job_name)

    def install(self) -> None:
        for path in (direct_spec(self.run).container_image, entry_path(self.profile.install_dir)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text("hsqs, installed")

    def jobs(self) -> list[str]:
        return [line.split()[0] for line in (self.folder / "jobs").read_text().splitlines()]

    def on_sbatch(self, commands: str) -> None:
        (self.folder / "sbatch").write_text(commands)

    def before_the_answer(self, commands: str) -> None:
        (self.folder / "after").write_text(commands)

    def submit(self, run: Run | None = None) -> Run:
        return submit_once(self.session, self.runs, self.journal, run or self.run, SCRIPT)

    def reconcile(self, run: Run | None = None) -> Run:
        return reconcile(self.session, self.runs, self.journal, run or self.run)

    def events(self) -> list[str]:
        return [record["event"] for record in self.journal.read()]

    def set_unknown(self) -> None:
        """Store the run as one whose answer was lost."""
        self.runs.save(replace(self.run, submission="unknown"))
