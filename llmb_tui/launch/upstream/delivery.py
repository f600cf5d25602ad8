"""`UpstreamDelivery`: submits by the recipe's own launch script, which chooses the job names."""

from __future__ import annotations

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.slurm.client import own_jobs
from llmb_tui.errors import LlmbError
from llmb_tui.launch.delivery import Jobs
from llmb_tui.launch.login_node import LoginNodeDelivery, Preparation
from llmb_tui.launch.refusal import SBATCH
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.launch.submission_status import SubmissionDir, SubmissionStatus
from llmb_tui.launch.upstream.jobs import CLOCKS_APART_S, jobs_of_launch
from llmb_tui.launch.upstream.output import batch_job, last_line, launch_failure, launch_reason, may_have_been_submitted


class UpstreamDelivery(LoginNodeDelivery):
    """Delivery of one run by NVIDIA's scripts."""

    answers_within_s = 600.0
    """Importing NeMo alone may take minutes on a busy file system."""

    def __init__(self, cluster: Cluster, run: Run) -> None:
        spec = self._spec = run.spec_as(UpstreamSpec)
        super().__init__(cluster, spec)
        self.program = spec.script
        workplace = spec.root if spec.how == "bash" else spec.directory
        self.place = SubmissionDir(
            folder=spec.folder,
            helper=("inside.sh", "group.sh", "claim.sh", "lock.sh", "launch.sh"),
            arguments=(spec.index, spec.token_file, workplace),
            reading=("lock.sh", "launched.sh"),
        )

    def preparation(self, script: str) -> Preparation:
        """The file with the command, and its folder."""
        folder = self.place.folder
        return Preparation(
            needed=self._spec.needed,
            folder=folder,
            folders=(folder,),
            files=((f"{folder}/command.sh", f"{script}\n"),),
            token=self._spec.token_file,
        )

    def has_answered(self, status: SubmissionStatus) -> bool:
        """True once a batch script has its one job; NeMo-Run may submit further jobs until it ends."""
        return self._spec.how == "sbatch" and bool(batch_job(status.output))

    def never_submitted(self, status: SubmissionStatus) -> str:
        """Why the helper ended before the command started; otherwise empty."""
        if not status.has_ended or status.time_of("began"):
            return ""
        return status.output or "Something on the cluster killed it before the launch script was started."

    def jobs(self, status: SubmissionStatus) -> Jobs:
        """Jobs that the launch named, else jobs that appeared during it; Slurm is always asked."""
        if not status.time_of("began"):
            return Jobs()
        return jobs_of_launch(self._spec, status, own_jobs(self._session, status.time_of("began") - CLOCKS_APART_S))

    def may_still_be_accepted(self, status: SubmissionStatus) -> bool:
        """True unless it is certain that sbatch was not called, or that Slurm rejected the job."""
        return status.exit_code is None or may_have_been_submitted(status.exit_code, status.output)

    def reason(self, status: SubmissionStatus) -> str:
        """Sbatch's message, or the last lines of the output."""
        return launch_reason(self._spec.script, status.exit_code, status.output) if status.has_ended else ""

    def refusal(self, run: Run) -> LlmbError:
        """Explanation of sbatch's message, if the note quotes sbatch; else of the launch script's output."""
        return super().refusal(run) if run.note.startswith(SBATCH) else launch_failure(run.note)

    def progress(self, status: SubmissionStatus) -> str:
        """Last line of the output, or the launch that this one waits for."""
        waits = "".join(status.values_of("waits")[:1]).split()
        if waits and not status.time_of("began"):
            owner = waits[-1].partition(".")[0] if len(waits) > 1 else "another process"
            return f"Waiting for another launch in the same folder: run {waits[0]}, by {owner}."
        if not status.owner:
            return ""
        words = last_line(status.output)
        return f"{self._spec.script} reports: {words}" if words else f"{self._spec.script} was started."
