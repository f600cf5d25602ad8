"""`DirectWay`: our own batch script is given to sbatch, and the job's name is the run's alone."""

from __future__ import annotations

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import find_jobs
from llmb_tui.launch.refusal import may_have_been_accepted, reason
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.launch.traces import Place, Traces
from llmb_tui.launch.way import Jobs, Preparation

# $2 is the script, $3 the beginning of its job's output, which is there whatever became of the submission.
_READING = r"""
sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{0,1\}$/answer \1/p' answer 2>/dev/null
for output in "$3"_*.out; do
    echo "output ${output#"$3"_}"
done
echo "words"
tail -c 2000 refusal 2>/dev/null
exit 0
"""


class DirectWay:
    """One run by the direct procedure."""

    program = "sbatch"
    answers_within_s = 90.0

    def __init__(self, spec: LaunchSpec) -> None:
        self._spec = spec
        self.script_path = f"{spec.experiment_dir}/{spec.task}_sbatch.sh"
        """Where the batch script is put: where NeMo-Run would."""
        self.place = Place(
            folder=f"{spec.experiment_dir}/submit",
            helper=f"{spec.experiment_dir}/submit.sh",
            arguments=(self.script_path, f"{spec.task_dir}/sbatch_{spec.job_name}"),
            reading=_READING,
        )

    def preparation(self, script: str) -> Preparation:
        """What the job needs is put into the run's folder."""
        spec = self._spec
        copies = tuple((source, f"{spec.task_dir}/{below}") for source, below in spec.copies)
        files = tuple((f"{spec.task_dir}/{below}", text) for below, text in spec.files)
        folders = {path.rpartition("/")[0] for path in (*(copy for _, copy in copies), *(path for path, _ in files))}
        # NeMo-Run starts every task in code/.
        folders |= {self.place.folder, f"{spec.task_dir}/code", *spec.folders}
        helper = remote_text("claim.sh", "submit.sh")
        return Preparation(
            needed=(spec.container_image, *(source for source, _ in copies)),
            folder=spec.task_dir,
            folders=tuple(sorted(folders)),
            files=(*files, (self.script_path, script), (self.place.helper, helper)),
            links=tuple((source, f"{spec.task_dir}/{below}") for source, below in spec.links),
            copies=copies,
        )

    def answered(self, found: Traces) -> bool:
        """An answer is there before the exit code is."""
        return bool(self._answered(found) or self._with_output(found))

    def never(self, found: Traces) -> str:
        """Where sbatch itself says so."""
        if found.exit_code is None or self._answered(found) or self.may_still_come(found):
            return ""
        return self.reason(found)

    def jobs(self, session: Session, found: Traces) -> Jobs:
        """What sbatch answered, else the jobs that have an output file, else those of the run's name."""
        ids = self._answered(found) or self._with_output(found)
        return Jobs(ids or tuple(job.id for job in find_jobs(session, self._spec.job_name)))

    def may_still_come(self, found: Traces) -> bool:
        """Unless sbatch said that Slurm does not want the job."""
        return found.exit_code is None or may_have_been_accepted(found.exit_code, found.words)

    def reason(self, found: Traces) -> str:
        """What sbatch said."""
        return "" if found.exit_code is None else reason(found.exit_code, found.words)

    def progress(self, found: Traces) -> str:
        """What sbatch complains about while it tries."""
        return reason(0, found.words) if found.words else ""

    def _answered(self, found: Traces) -> tuple[str, ...]:
        return found.all("answer")[-1:]

    def _with_output(self, found: Traces) -> tuple[str, ...]:
        named = {value.removesuffix(".out") for value in found.all("output")}
        return tuple(sorted((job for job in named if job.isdecimal()), key=int))
