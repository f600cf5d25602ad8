"""Actions on a demo cluster that only tests need."""

from __future__ import annotations

from llmb_tui.demo import faults
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.demo.slurm.queue import cancel
from llmb_tui.demo.slurm.store import Store
from tests.kit.waiting import until


def end_jobs(cluster: DemoCluster) -> None:
    """Cancel all jobs, and wait until their processes are gone."""
    jobs = Store(cluster.root / "slurm")
    for job in jobs.all():
        if job.active:
            cancel(jobs, job.id)
    until(lambda: not any(jobs.is_alive(job.id) for job in jobs.all()), "the jobs of the demo cluster to end")


def fault(cluster: DemoCluster, name: str, text: str | None = "") -> None:
    """Set a fault of the table in `faults` to a text; None switches the fault off."""
    assert f"`{name}`" in str(faults.__doc__)
    path = faults.folder(cluster.root / "slurm") / name
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text)


def clear_faults(cluster: DemoCluster) -> None:
    """Switch all faults off."""
    for path in faults.folder(cluster.root / "slurm").iterdir():
        path.unlink()


def drop_connections(cluster: DemoCluster) -> None:
    """Cut all SSH connections."""
    assert cluster.server
    cluster.server.drop_connections()


def refuse(cluster: DemoCluster, refused: bool) -> None:
    """Refuse new SSH connections, or accept them again."""
    assert cluster.server
    cluster.server.refuse(refused)
