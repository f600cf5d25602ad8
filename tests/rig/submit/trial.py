"""`Trial`: submissions that are interrupted, settled as a person does, and compared with what Slurm has."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.submit import reconcile, submit_once
from tests.kit.runs import delivery_of
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.rig.submit.cut_session import Cut, CutSession
from tests.rig.submit.intents import Laptop, MakesRuns, Tally

AT_ONCE = 4


class Trial:
    """Submits runs while something goes wrong, then does what a person does: look again, submit again."""

    def __init__(self, rig: Rig, intents: MakesRuns, laptop: Laptop, tally: Tally) -> None:
        self.rig, self.intents, self.laptop, self.tally = rig, intents, laptop, tally
        self.runs: list[Run] = []
        self._lock = threading.Lock()

    def new(self, **spec: object) -> Run:
        """One more run that has to be settled in the end."""
        with self._lock:
            run = self.intents.new(**spec)
            self.runs.append(run)
            return run

    def session(self) -> contextlib.closing[SlurmCluster]:
        """A session over a line that nothing happens to."""
        return contextlib.closing(SlurmCluster(self.intents.profile()))

    def submit(self, session: SlurmCluster, run: Run, *lines: str, laptop: Laptop | None = None) -> Run:
        """Submit a run; `lines` are options of its job, which is held unless there are any."""
        at = laptop or self.laptop
        return submit_once(session, at.runs, at.journal, run, self.intents.script(run, *lines))

    def submit_in_background(self, run: Run, told: list[str] | None = None) -> threading.Thread:
        """Submit a run meanwhile, whatever comes of it; `told` is given what the submission says of itself."""

        def work() -> None:
            listener, laptop = told.append if told is not None else None, self.laptop
            with self.session() as session, contextlib.suppress(LlmbError):
                submit_once(session, laptop.runs, laptop.journal, run, self.intents.script(run), on_progress=listener)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def reconcile(self, session: SlurmCluster, run: Run, *, laptop: Laptop | None = None) -> Run:
        """Ask the cluster about a run."""
        at = laptop or self.laptop
        return reconcile(session, at.runs, at.journal, run)

    def remembered(self, run: Run) -> Run:
        """The run as the laptop knows it."""
        return self.laptop.runs.load(run.id) if self.laptop.runs.has(run.id) else run

    def traces(self, run: Run) -> Path:
        """Folder with the traces of a submission, as this machine sees it: where the cluster does."""
        return Path(delivery_of(run).place.folder)

    def group(self, run: Run) -> int:
        """Process group of the submission on the login node, once it has begun."""
        claim = self.traces(run) / "claim"
        until(claim.is_symlink, "the submission has begun")
        return int(str(claim.readlink()).split()[1])

    def submission_sizes(self) -> list[tuple[int, int]]:
        """Bytes up and down of each remote call of a submission that nothing happens to."""
        with Line(self.rig.port()) as line, contextlib.closing(CutSession(self.intents.profile(), line)) as session:
            self.submit(session, self.new())
            return session.sizes

    def submit_cut(self, line: Line, cuts: Sequence[Cut]) -> None:
        """Submit over a line that is cut there. What certainly has not begun is submitted again."""
        run = self.new()
        with (
            contextlib.closing(CutSession(self.intents.profile(), line, *cuts)) as session,
            contextlib.suppress(LlmbError),
        ):
            self.submit(session, run)
        line.cut_after()
        line.accept()
        if self.remembered(run).submission == "intended":
            with self.session() as session:
                self.submit(session, run)

    def submit_on_cut_lines(self, schedules: Iterable[Sequence[Cut]]) -> None:
        """One submission for each schedule of cuts, some at once, each on a line of its own."""
        waiting = iter(list(schedules))

        def worker(_: int) -> int:
            with Line(self.rig.port()) as line:
                while True:
                    with self._lock:
                        cuts = next(waiting, None)
                    if cuts is None:
                        return line.cuts
                    self.submit_cut(line, cuts)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            self.tally.drops += sum(pool.map(worker, range(AT_ONCE)))

    def settle(self) -> None:
        """Reconcile until nothing is unknown any more; then all must be as Slurm has it."""
        unknown = [run for run in self.runs if self.remembered(run).submission == "unknown"]
        self.tally.were_unknown += len(unknown)
        with self.session() as session:

            def is_unknown(run: Run) -> bool:
                with contextlib.suppress(LlmbError):  # the controller may still be coming up
                    return self.reconcile(session, run).submission == "unknown"
                return True

            def all_known() -> bool:
                unknown[:] = [run for run in unknown if is_unknown(run)]
                return not unknown

            try:
                until(all_known, deadline_s=180)
            except TimeoutError as late:
                messages = [f"{known.id}: {known.note}" for known in map(self.remembered, unknown)]
                raise AssertionError("\n".join(["still unknown:", *messages])) from late
        self.tally.add([self.remembered(run) for run in self.runs], self.intents.jobs(self.runs))
        assert self.tally.twice == []
        assert self.tally.lost == []


def places(sizes: Sequence[tuple[int, int]], up: int, down: int, *, stays: bool = False) -> Iterator[Cut]:
    """Cuts at `up` + 1 even places of what each call sends, and at `down` + 1 of what it receives."""
    for call, (sent, received) in enumerate(sizes, 1):
        for step in range(up + 1):
            yield Cut(call, up=sent * step // up, stays=stays)
        for step in range(down + 1):
            yield Cut(call, down=received * step // down, stays=stays)
