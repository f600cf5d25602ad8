"""Effects of run options and cluster options on a job, run to its end on the embedded cluster."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.client import slurm_version
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.naming import new_run_id
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.secrets import put_secret
from llmb_tui.launch.submit import submit_once
from llmb_tui.plan.selection import RunOptions
from llmb_tui.preflight.secret import SecretValue
from llmb_tui.request import RunRequest
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from tests.kit.demo import end_jobs
from tests.kit.waiting import until
from tests.launch.launch_cases import ROWS, MakePlan

PATIENCE_S = 300.0
PLAIN = RunOptions()
TOKEN = "hf_" + "t" * 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoCluster]:
    with DemoCluster(tmp_path_factory.mktemp("options"), speed=2000.0) as demo:
        yield demo
        end_jobs(demo)


@pytest.fixture(scope="module")
def session(cluster: DemoCluster) -> Iterator[SlurmCluster]:
    made = SlurmCluster(cluster.profile)
    yield made
    made.close()


class Bench:
    """Runs a row of a recipe to its end."""

    def __init__(self, session: SlurmCluster, catalog: Catalog, make_plan: MakePlan, folder: Path) -> None:
        self.session = session
        self.catalog = catalog
        self.make_plan = make_plan
        self.folder = folder
        self.script = ""

    def finished(self, name: str, profile: SlurmProfile, options: RunOptions = PLAIN) -> Path:
        """Folder of the run, after its job completed."""
        row, run_id = ROWS[name], new_run_id(time.time())
        request = RunRequest(self.catalog.recipe(row[0]), self.make_plan(*row, options=options), profile)
        spec = launch_spec(request, run_id, slurm_version(self.session))
        for path, text in ((spec.container_image, b"hsqs"), *((source, b"pass") for source, _ in spec.copies)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(text)
        run = Run.of(request, spec, 0.0)
        runs = Runs(UserPaths(self.folder / "config", self.folder / "state"))
        self.script = render(spec)
        (job_id,) = submit_once(self.session, runs, Journal(self.folder / "journal.jsonl"), run, self.script).job_ids
        task = Path(spec.task_dir)
        batch_log = task / f"sbatch_{spec.job_name}_{job_id}.out"
        until(
            lambda: batch_log.exists() and "job exited with code" in batch_log.read_text(),
            "the job is over",
            PATIENCE_S,
        )
        log = Path(spec.log.path(job_id)).read_text()
        assert "job exited with code 0" in batch_log.read_text(), log
        return task


@pytest.fixture
def bench(session: SlurmCluster, catalog: Catalog, make_plan: MakePlan, tmp_path: Path) -> Bench:
    return Bench(session, catalog, make_plan, tmp_path)


def _log(task: Path) -> str:
    (log,) = task.glob("log-*.out")
    return log.read_text()


@pytest.mark.parametrize("name", ROWS)
def test_one_row_of_each_recipe_runs(bench: Bench, cluster: DemoCluster, name: str) -> None:
    """The demo's Slurm is older than segments; its nodes have the two NUMA nodes that 25.12 binds to."""
    log = _log(bench.finished(name, cluster.profile))
    assert "49/49" in log or "50/50" in log
    assert "not bound" not in log
    assert "--segment" not in bench.script


@pytest.mark.parametrize(
    ("name", "folder"), [("nemotron4-340b-25.12", "nsys_profile"), ("grok1-25.02", "results/nsys")]
)
def test_a_profiled_run_leaves_its_reports_in_the_runs_folder(
    bench: Bench, cluster: DemoCluster, name: str, folder: str
) -> None:
    options = RunOptions(profile=True, profile_start=20, profile_stop=25)
    task = bench.finished(name, cluster.profile, options)
    (report,) = (task / folder).glob("*.nsys-rep")
    assert report.read_text() == "simulated: nothing was profiled\n"


def test_pinning_memory_and_vboost_do_no_harm_if_sudo_is_refused(bench: Bench, cluster: DemoCluster) -> None:
    profile = replace(cluster.profile, cpus_per_task=14, vboost=True, memory="900G")
    task = bench.finished("nemotron4-25.04", profile)
    assert task.parents[1].name.endswith("_pinned")
    assert "sudo: a password is required" in (task.parent / "vboost.err").read_text()


def test_a_token_reaches_the_container_as_a_file_of_the_operators(
    bench: Bench, cluster: DemoCluster, session: SlurmCluster
) -> None:
    file_path = Path(put_secret(session, SecretValue("hugging-face", TOKEN)))
    checkpoint = cluster.root / "shared" / "checkpoint"
    checkpoint.mkdir()
    options = RunOptions(hub_tokenizer=True, load_checkpoint=str(checkpoint))
    task = bench.finished("llama3.1-25.04", cluster.profile, options)
    assert (task / "hugging-face-token").readlink() == file_path
    assert stat.S_IMODE(file_path.stat().st_mode) == 0o600
    assert (Path(cluster.profile.install_dir) / ".cache" / "huggingface").is_dir()
    written = [path for path in task.parent.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in written if TOKEN in path.read_text(errors="replace")]
    assert TOKEN not in bench.script


def test_without_a_token_the_container_sees_an_empty_file(
    bench: Bench, cluster: DemoCluster, session: SlurmCluster
) -> None:
    session.run(["rm", "-f", f"{session.run(['sh', '-c', 'echo $HOME']).stdout.strip()}/.llmb-tui/hugging-face-token"])
    task = bench.finished("llama3.1-25.04", cluster.profile, RunOptions(hub_tokenizer=True))
    token = task / "hugging-face-token"
    assert (token.is_symlink(), token.read_bytes()) == (False, b"")
