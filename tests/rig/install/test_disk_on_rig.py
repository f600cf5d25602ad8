"""Files of an install and a run on a real login node with a real Slurm, and their deletion by the verb."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from llmb_tui.cluster_files.housekeeping import install_items, remove, select_items
from tests.kit import verbs
from tests.kit.runs import CATALOG, make_run
from tests.rig.cluster import Rig
from tests.rig.install.site import IMAGE, BackgroundInstall, Site
from tests.rig.install.terminal import environment
from tests.rig.machine import OPERATOR_ID

FOLDER = "workloads/pretrain_nemotron4/experiments/e/e_mine"


def disk(site: Site, *words: str, code: int = 0) -> Any:
    done = verbs.run(("disk", site.profile.name, "--json", *words), environment(site))
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def kept_reasons(site: Site) -> dict[str, str | None]:
    return {thing["name"]: thing["kept"] for thing in disk(site)["things"]}


def test_an_image_and_a_run_are_deleted_once_nothing_needs_them(site: Site, rig: Rig) -> None:
    services = site.services()
    assert [state.status for state in site.run()] == ["done", "done", "done"]
    precious = rig.new_dir() / "precious"
    rig.as_operator(f"mkdir -p {site.install}/{FOLDER}/e_mine && echo kept >{precious}", check=True)
    rig.as_operator(f"ln -s {precious.parent} {site.install}/{FOLDER}/away", check=True)
    rig.as_operator(f"ln -s {precious.parent} {site.install}/venvs/away", check=True)
    hostile = site.install / "venvs" / "$(touch hacked) * -rf"
    rig.as_operator(["mkdir", str(hostile)], check=True)
    batch = f"sbatch --parsable --account=llmbench --partition=batch --output=/dev/null --chdir={site.install}"
    job = rig.as_operator(f"{batch} --wrap 'sleep 600'", check=True).stdout.strip()
    task = Path(site.install, FOLDER, "e_mine")
    run = make_run("mine", task, cluster=site.profile.name, job_ids=(job,), job_state="RUNNING")
    services.runs.save(run)

    image, folder = f"images/{IMAGE}.sqsh", FOLDER
    assert {name: bool(reason) for name, reason in kept_reasons(site).items()} == {image: True, folder: True}
    # The local record says that the run has ended; Slurm's queue still has the job.
    services.runs.save(replace(run, job_state="COMPLETED", log_read=True))
    now = kept_reasons(site)
    assert "is active" in (now[folder] or "")
    assert job in (now[image] or "")
    assert "is active" in disk(site, "--remove", "mine", "--yes", code=1)["error"]["why"]
    rig.cancel_jobs()
    assert kept_reasons(site) == {image: None, folder: None}
    assert disk(site, "--remove", image, code=1)["error"]["fix"] == "Add --yes to remove without a confirmation."
    assert "is read-only" in disk(site, "--read-only", "--remove", image, "--yes", code=1)["error"]["what"]
    assert site.image.exists()

    outcome = disk(site, "--remove", image, "mine", "--yes")
    assert outcome == {"cluster": site.profile.name, "removed": [image, folder], "kept": {}, "left": None}
    assert not site.image.exists()
    assert not (site.install / FOLDER).exists()
    assert precious.read_text() == "kept\n"
    assert disk(site)["more"] == 1
    assert hostile.is_dir()
    assert not list(site.install.rglob("hacked"))
    assert os.listdir(site.install / ".llmb-tui" / f"trash.{OPERATOR_ID}") == []
    assert kept_reasons(site) == {}
    assert [state.status for state in site.run()] == ["done", "done", "done"]
    assert site.image.exists()


def test_an_install_that_began_after_the_listing_keeps_everything(site: Site, rig: Rig) -> None:
    with rig.knob("import-s", "20"):
        run = BackgroundInstall(site.installer())
        run.until_running()
        session = site.session()
        items, _ = install_items(session, CATALOG, (), {})
        assert [thing.kept.startswith("An install is in progress: image-") for thing in items] == [True] * len(items)
        rig.as_operator(f"mkdir -p {site.install}/venvs/made", check=True)
        forced = [replace(thing, kept="") for thing in install_items(session, CATALOG, (), {})[0]]
        removal = remove(session, select_items(forced, ["venvs/made"]))
        assert "An install step is at work" in removal.kept["venvs/made"]
        run.stop.set()
        site.end_operators_processes()
    assert (site.install / "venvs" / "made").is_dir()
