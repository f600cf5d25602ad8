"""`DirectDelivery`: submits our own batch script with sbatch; the job name belongs to this run alone."""

from __future__ import annotations

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.slurm.client import find_jobs
from llmb_tui.launch.delivery import Jobs
from llmb_tui.launch.login_node import LoginNodeDelivery, Preparation
from llmb_tui.launch.refusal import may_have_been_accepted, reason
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.launch.submission_status import SubmissionDir, SubmissionStatus


class DirectDelivery(LoginNodeDelivery):
    """Delivery of one run of our script."""

    program = "sbatch"
    answers_within_s = 90.0

    def __init__(self, cluster: Cluster, run: Run) -> None:
        spec = self._spec = run.spec_as(LaunchSpec)
        super().__init__(cluster, spec)
        self.script_path = f"{spec.experiment_dir}/{spec.task}_sbatch.sh"
        """Path of the batch script, as NeMo-Run would choose it."""
        self.place = SubmissionDir(
            folder=f"{spec.experiment_dir}/submit",
            helper=("inside.sh", "group.sh", "claim.sh", "sbatch.sh", "submit.sh"),
            arguments=(self.script_path, f"{spec.task_dir}/sbatch_{spec.job_name}"),
            reading=("submitted.sh",),
        )

    def preparation(self, script: str) -> Preparation:
        """Files and folders that the job needs in the run's folder."""
        spec = self._spec
        copies = tuple((source, f"{spec.task_dir}/{below}") for source, below in spec.copies)
        files = tuple((f"{spec.task_dir}/{below}", text) for below, text in spec.files)
        folders = {path.rpartition("/")[0] for path in (*(copy for _, copy in copies), *(path for path, _ in files))}
        # NeMo-Run starts every task in code/.
        folders |= {self.place.folder, f"{spec.task_dir}/code", *spec.folders}
        return Preparation(
            needed=(spec.container_image, *(source for source, _ in copies)),
            folder=spec.experiment_dir,
            folders=tuple(sorted(folders)),
            files=(*files, (self.script_path, script)),
            links=tuple((source, f"{spec.task_dir}/{below}") for source, below in spec.links),
            copies=copies,
        )

    def has_answered(self, status: SubmissionStatus) -> bool:
        """True once sbatch's answer is there, which comes before its exit code."""
        return bool(self._answer(status) or self._with_output(status))

    def never_submitted(self, status: SubmissionStatus) -> str:
        """Sbatch's message if it rules out a job; otherwise empty."""
        if status.exit_code is None or self._answer(status) or self.may_still_be_accepted(status):
            return ""
        return self.reason(status)

    def jobs(self, status: SubmissionStatus) -> Jobs:
        """The job that sbatch answered, else the jobs with an output file, else the jobs of the run's name."""
        ids = self._answer(status) or self._with_output(status)
        return Jobs(ids or tuple(job.id for job in find_jobs(self._session, self._spec.job_name)))

    def may_still_be_accepted(self, status: SubmissionStatus) -> bool:
        """True unless sbatch reported that Slurm rejected the job."""
        return status.exit_code is None or may_have_been_accepted(status.exit_code, status.output)

    def reason(self, status: SubmissionStatus) -> str:
        """Sbatch's message."""
        return "" if status.exit_code is None else reason(status.exit_code, status.output)

    def progress(self, status: SubmissionStatus) -> str:
        """Sbatch's complaint while it retries."""
        return reason(0, status.output) if status.output else ""

    def _answer(self, status: SubmissionStatus) -> tuple[str, ...]:
        return status.values_of("answer")[-1:]

    def _with_output(self, status: SubmissionStatus) -> tuple[str, ...]:
        ids = {value.removesuffix(".out") for value in status.values_of("output")}
        return tuple(sorted((job for job in ids if job.isdecimal()), key=int))
