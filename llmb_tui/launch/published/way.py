"""`PublishedWay`: the recipe's own launch script submits, and fixes the names of its jobs."""

from __future__ import annotations

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.own_jobs import own_jobs
from llmb_tui.launch.published.launch_failure import launch_reason
from llmb_tui.launch.published.launched import CLOCKS_APART_S, launched
from llmb_tui.launch.published.output import batch_job, last_line
from llmb_tui.launch.published.spec import PublishedSpec
from llmb_tui.launch.refusal import may_have_been_submitted
from llmb_tui.launch.traces import Place, Traces
from llmb_tui.launch.way import Jobs, Preparation


class PublishedWay:
    """One run by the published procedure."""

    answers_within_s = 600.0
    """Importing NeMo alone may take minutes where the file system is busy."""

    def __init__(self, spec: PublishedSpec) -> None:
        self._spec = spec
        self.program = spec.script
        where = spec.root if spec.how == "bash" else spec.directory
        self.place = Place(
            folder=spec.folder,
            helper=f"{spec.folder}/launch.sh",
            arguments=(spec.index, spec.token_file, where),
            reading=remote_text("launched.sh"),
        )

    def preparation(self, script: str) -> Preparation:
        """The command, and what runs it."""
        folder = self.place.folder
        helper = remote_text("claim.sh", "lock.sh", "launch.sh")
        return Preparation(
            needed=self._spec.needed,
            folder=folder,
            folders=(folder,),
            files=((f"{folder}/command.sh", f"{script}\n"), (self.place.helper, helper)),
            token=self._spec.token_file,
        )

    def answered(self, found: Traces) -> bool:
        """A batch script is one job; until NeMo-Run is over, it may submit one more."""
        return self._spec.how == "sbatch" and bool(batch_job(found.words))

    def never(self, found: Traces) -> str:
        """It ended before the command was started."""
        if not found.over or found.moment("began"):
            return ""
        return found.words or "It was ended on the cluster before the launch script was started."

    def jobs(self, session: Session, found: Traces) -> Jobs:
        """Those that the launch has named, else what has come meanwhile; never without a look at Slurm."""
        if not found.moment("began"):
            return Jobs()
        return launched(self._spec, found, own_jobs(session, found.moment("began") - CLOCKS_APART_S))

    def may_still_come(self, found: Traces) -> bool:
        """Unless it is certain that sbatch was not called, or was told that Slurm does not want the job."""
        return found.exit_code is None or may_have_been_submitted(found.exit_code, found.words)

    def reason(self, found: Traces) -> str:
        """What sbatch said, or the last lines of the output."""
        return launch_reason(self._spec.script, found.exit_code, found.words) if found.over else ""

    def progress(self, found: Traces) -> str:
        """The last line of its output."""
        waits = "".join(found.all("waits")[:1]).split()
        if waits and not found.moment("began"):
            owner = waits[-1].partition(".")[0] if len(waits) > 1 else "another process"
            return f"Another launch in the same folder is waited for: run {waits[0]}, by {owner}."
        if not found.owner:
            return ""
        said = last_line(found.words)
        return f"{self._spec.script} says: {said}" if said else f"{self._spec.script} was started."
