"""The steps of NVIDIA's scripts: selection, order, and the effects of their shell code with a real git and Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.upstream import Commit, Constraints, Pin
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.step_state import explain
from llmb_tui.launch.upstream.install import upstream_install
from llmb_tui.preflight.secret import HUB_TOKEN
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan
from tests.launch.upstream_install import UpstreamInstall

KINDS = {
    "nemotron4-25.04": "directories commits repository environment image link setup pins proof",
    "llama3.1-25.04": "directories token commits repository environment image link setup pins proof",
    "llama3.1-24.11": "directories token repository environment image link setup",
    "grok1-25.02": "directories repository image link setup",
    "nemotron4-340b-25.12": "directories commits repository environment image setup proof",
}
MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"


def steps_of(
    catalog: Catalog, make_plan: MakePlan, name: str, profile: SlurmProfile = PROFILE
) -> dict[str, InstallStep]:
    """Steps of a row, by the first word of their ids."""
    row = ROWS[name]
    steps = upstream_install(RunRequest(catalog.recipe(row[0]), make_plan(*row), profile))
    return {step.id.split("-")[0]: step for step in steps}


@pytest.mark.parametrize("name", KINDS)
def test_every_recipe_has_its_steps(catalog: Catalog, make_plan: MakePlan, name: str) -> None:
    steps = steps_of(catalog, make_plan, name)
    assert " ".join(steps) == KINDS[name]
    assert len({step.id for step in steps.values()}) == len(steps)
    results = {path for step in steps.values() for path in step.results}
    assert {path for path in results if not path.startswith("/lustre/llmb")} <= {f"~/{HUB_TOKEN}"}


def test_commits_are_those_of_the_gpu_type(catalog: Catalog, make_plan: MakePlan) -> None:
    words = steps_of(catalog, make_plan, "nemotron4-340b-25.12")["commits"].args
    assert "1f422a19d942fab0aa54e3099f4b5752d871cb5d" in words
    assert not any(word.startswith("f260da5d") for word in words)


def test_another_gpu_type_is_set_up_again_if_the_script_depends_on_it(catalog: Catalog, make_plan: MakePlan) -> None:
    recipe = catalog.recipe("nemotron4-340b@25.12")
    by_gpu = [
        upstream_install(RunRequest(recipe, make_plan(recipe.id, "340b", gpu, "fp8", 256), PROFILE))[-1]
        for gpu in ("h100", "b200")
    ]
    assert by_gpu[0].id == by_gpu[1].id  # so that one test waits for the other
    assert by_gpu[0].results != by_gpu[1].results


def test_the_setup_runs_in_a_job_if_the_readme_requires_it(catalog: Catalog, make_plan: MakePlan) -> None:
    profile = replace(PROFILE, gpu_request="gres", qos="short")
    in_job = steps_of(catalog, make_plan, "nemotron4-25.04", profile)["setup"].in_job
    assert in_job
    assert in_job.command == ""
    expected = (
        "-A research_llm_bench -p batch -N 1 --gres=gpu:8 --qos=short --ntasks=1 --exclusive --mem=0 --time=01:00:00"
    )
    assert " ".join(in_job.options) == expected
    assert steps_of(catalog, make_plan, "nemotron4-340b-25.12")["setup"].in_job is None


def test_the_setup_gets_the_variables_of_its_readme(catalog: Catalog, make_plan: MakePlan) -> None:
    def command(name: str) -> str:
        args = steps_of(catalog, make_plan, name)["setup"].args
        return " ".join(args[args.index("--") + 1 :])

    assert command("nemotron4-25.04") == "env STAGE_PATH=/lustre/llmb/published/nemotron4-25.04 bash ./setup.sh"
    assert command("llama3.1-24.11") == (
        "env STAGE_PATH=/lustre/llmb/published/llama3.1-24.11 SLURM_ACCOUNT=research_llm_bench SLURM_PARTITION=batch "
        "SLURM_GPUS_PER_NODE=8 bash ./setup.sh"
    )
    assert command("nemotron4-340b-25.12") == (
        "env -u MANUAL_INSTALL LLMB_INSTALL=/lustre/llmb GPU_TYPE=gb200 bash ./setup.sh"
    )


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("nemotron4-25.04", ["3.10.12", "no", "3.10 3.11 3.12", "3.13 3.14"]),
        ("llama3.1-24.11", ["3.9", "no", "3.9 3.10 3.11 3.12", "3.13 3.14"]),
        ("nemotron4-340b-25.12", ["3.12", "yes", "3.12", ""]),
    ],
)
def test_the_environment_has_the_python_of_the_recipe(
    catalog: Catalog, make_plan: MakePlan, name: str, args: list[str]
) -> None:
    step = steps_of(catalog, make_plan, name)["environment"]
    assert list(step.args[1:5]) == args
    assert step.args[0] == f"/lustre/llmb/venvs/{name}"


# Run on this machine, with a real git and a real Python.


@pytest.fixture
def site(tmp_path: Path, catalog: Catalog, make_plan: MakePlan) -> UpstreamInstall:
    return UpstreamInstall(tmp_path, catalog.recipe("nemotron4@25.04"), make_plan)


def test_a_commit_that_is_there_is_found(site: UpstreamInstall) -> None:
    site.made("directories", "commits")


@pytest.mark.parametrize(("launch", "still"), [(True, False), (False, True)], ids=["each launch", "setup"])
def test_a_missing_token_is_reported_also_after_it_was_removed_if_it_is_needed_again(
    site: UpstreamInstall, launch: bool, still: bool
) -> None:
    setup = replace(site.scripts.setup, needs_hub_token=not launch)
    site.scripts = replace(site.scripts, setup=setup, launch=replace(site.scripts.launch, needs_hub_token=launch))
    site.made("directories")
    failure = explain(site.fails("token"))
    assert failure.key_would_help == "hugging-face"
    assert "Enter your Hugging Face token" in failure.fix
    token = site.home / HUB_TOKEN
    token.parent.mkdir()
    token.write_text("hf_secret\n")
    site.made("token")
    assert "hf_secret" not in "".join(
        path.read_text() for path in site.install.rglob("*") if path.is_file() and not path.is_symlink()
    )
    token.unlink()
    assert site.done("token") is still


def test_each_user_of_a_shared_install_has_a_separate_token(site: UpstreamInstall) -> None:
    site.scripts = replace(site.scripts, launch=replace(site.scripts.launch, needs_hub_token=True))
    site.made("directories")
    homes = site.home, site.home.with_name("other")
    for site.home in homes:
        (site.home / HUB_TOKEN).parent.mkdir(parents=True)
        (site.home / HUB_TOKEN).write_text("hf_secret\n")
        site.made("token")
    for site.home in homes:
        assert site.done("token")
    (homes[1] / HUB_TOKEN).unlink()
    assert not site.done("token")
    site.home = homes[0]
    assert site.done("token")


def test_a_missing_commit_is_reported(site: UpstreamInstall) -> None:
    site.made("directories")
    site.scripts = replace(site.scripts, commits=(Commit(site.url("NeMo"), "1" * 40),))
    failure = explain(site.fails("commits"))
    assert failure.line == f"Commit {'1' * 40} is not in {site.url('NeMo')}."
    assert "may not be public" in failure.reason
    assert failure.fix == "Choose another GPU type, or choose our script."


@pytest.mark.parametrize("kind", ["commits", "repository"])
def test_an_unreachable_git_host_is_reported(site: UpstreamInstall, kind: str) -> None:
    site.made("directories")
    url = "https://127.0.0.1:1/NVIDIA/NeMo"
    site.scripts = replace(site.scripts, repository=url, commits=(Commit(url, site.commit),))
    failure = explain(site.fails(kind))
    assert failure.reason == "The node cannot reach the git host."
    assert "offline" in failure.fix


def test_a_missing_tag_is_reported(site: UpstreamInstall) -> None:
    site.made("directories")
    site.scripts = replace(site.scripts, tag="v99")
    assert explain(site.fails("repository")).reason == "The repository does not contain the release's tag."
    assert not list(Path(site.steps()["repository"].args[2]).parent.glob("dgxc*"))


def test_a_branch_is_not_accepted_as_a_tag(site: UpstreamInstall) -> None:
    site.made("directories")
    site.git("-C", str(site.upstream / "recipes"), "branch", "v26")
    site.scripts = replace(site.scripts, tag="v26")
    assert "not the release's" in explain(site.fails("repository")).reason


def test_a_checkout_of_another_tag_is_left_alone(site: UpstreamInstall) -> None:
    site.made("directories", "repository")
    site.scripts = replace(site.scripts, tag="v24")
    assert "no checkout of v24 but of v25.04" in explain(site.fails("repository")).line


def test_a_checkout_with_changes_is_left_alone(site: UpstreamInstall) -> None:
    site.made("directories", "repository")
    repository = Path(site.steps()["repository"].args[2])
    (repository / "nemotron/launch.sh").write_text("echo mine")
    Path(site.steps()["repository"].results[-1]).unlink()
    failure = explain(site.fails("repository"))
    assert failure.line.endswith("has local changes:  M nemotron/launch.sh")
    assert "was not changed" in failure.reason
    assert (repository / "nemotron/launch.sh").read_text() == "echo mine"


def test_a_checkout_that_another_user_made_is_used(site: UpstreamInstall) -> None:
    """A shared install, possibly below a link that git resolves."""
    linked = site.install.with_name("linked")
    linked.symlink_to(site.install)
    site.install = linked
    site.made("directories", "repository")
    Path(site.steps()["repository"].results[-1]).unlink()
    site.variables = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    site.made("repository")
    repository = Path(site.steps()["repository"].args[2])
    (repository / "nemotron/launch.sh").write_text("echo mine")
    Path(site.steps()["repository"].results[-1]).unlink()
    assert explain(site.fails("repository")).line.endswith("has local changes:  M nemotron/launch.sh")


def test_remains_of_an_interrupted_clone_are_removed(site: UpstreamInstall) -> None:
    site.made("directories")
    repository = Path(site.steps()["repository"].args[2])
    half = repository.parent / f".{repository.name}.me@elsewhere.9.9"
    half.mkdir(parents=True)
    site.made("repository")
    assert not half.exists()


def with_bundles(site: UpstreamInstall, *names: str) -> None:
    """Add bundles, and disable the network."""
    offline = site.install / "offline"
    offline.mkdir()
    for name in names:
        site.git("-C", str(site.upstream / name), "bundle", "create", str(offline / f"{name}.bundle"), "--all")
    away = "https://127.0.0.1:1/NVIDIA"
    commits = (Commit(f"{away}/NeMo", site.commit),)
    site.scripts = replace(site.scripts, repository=f"{away}/recipes.git", commits=commits)


def test_bundles_replace_the_network(site: UpstreamInstall) -> None:
    site.made("directories")
    with_bundles(site, "NeMo", "recipes")
    site.made("commits", "repository")


def test_a_bundle_does_not_match_a_repository_with_a_longer_name(site: UpstreamInstall) -> None:
    site.made("directories")
    with_bundles(site, "NeMo")
    commits = (Commit(site.url("NeMo"), site.commit), Commit(site.url("NeMo-Run.git"), site.commit))
    site.scripts = replace(site.scripts, commits=commits)
    site.make_repository("NeMo-Run.git", {"a": "b"}, "v1")
    assert "Commit" in site.fails("commits")[-1]
    assert "NeMo-Run" in site.fails("commits")[-1]


def test_bundles_of_other_repositories_leave_it_to_the_network(site: UpstreamInstall) -> None:
    site.made("directories")
    offline = site.install / "offline"
    offline.mkdir()
    site.git("-C", str(site.upstream / "NeMo"), "bundle", "create", str(offline / "NeMo-main.bundle"), "--all")
    assert "No bundle in" in site.run("commits")
    assert site.done("commits")


def test_a_bundle_without_the_commit_is_reported(site: UpstreamInstall) -> None:
    site.made("directories")
    with_bundles(site, "NeMo", "recipes")
    site.scripts = replace(site.scripts, commits=(Commit("https://127.0.0.1:1/NVIDIA/NeMo", "1" * 40),))
    assert explain(site.fails("commits")).line.startswith(f"Commit {'1' * 40} is not in")


def use_python(site: UpstreamInstall) -> None:
    """Request the Python version of this test, which the environment gets."""
    site.scripts = replace(site.scripts, python=None, python_exact=MINOR)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, catalog: Catalog, make_plan: MakePlan) -> Path:
    """Environment that the step has made with pip, which takes seconds."""
    site = UpstreamInstall(tmp_path_factory.mktemp("made"), catalog.recipe("nemotron4@25.04"), make_plan)
    use_python(site)
    site.made("directories", "environment")
    return Path(site.steps()["environment"].args[0])


@pytest.fixture
def copying(site: UpstreamInstall, environment: Path) -> str:
    """Replacement for Python: each environment that it makes is a copy of `environment`."""
    copy = f"""case "$1 $2" in "-m venv") exec cp -a "{environment}" "$3" ;; esac"""
    site.program(f"python{MINOR}", f'{copy}\nexec "{sys.executable}" "$@"')
    use_python(site)
    return str(site.bin / f"python{MINOR}")


@pytest.mark.usefixtures("copying")
def test_a_broken_environment_is_detected_and_built_again(site: UpstreamInstall) -> None:
    site.made("directories", "environment")
    step = site.steps()["environment"]
    Path(step.results[-1]).unlink()
    assert "The environment is there" in site.run("environment")
    python = Path(step.results[0])
    python.with_name("pip").unlink()
    assert site.done("environment"), "pip comes and goes while the setup script replaces it"
    python.unlink()
    python.symlink_to("/nowhere")
    assert not site.done("environment")
    note = Path(site.steps()["setup"].results[0])
    note.parent.mkdir()
    note.write_text("done")
    assert not site.done("environment")
    assert "made anew" in site.run("environment")
    assert site.done("environment")
    assert not note.exists()


def test_an_environment_that_was_removed_is_not_there_before_it_is_whole_again(
    site: UpstreamInstall, copying: str
) -> None:
    site.made("directories", "environment")
    path = Path(site.steps()["environment"].args[0])
    shutil.rmtree(path)
    Path(copying).write_text(f"""#!/bin/sh
case "$1 $2" in "-m venv") mkdir -p "$3/bin" && ln -s "{sys.executable}" "$3/bin/python" && exit 1 ;; esac
exec "{sys.executable}" "$@"
""")
    site.fails("environment")
    assert (path / "bin" / "python").exists()
    assert not site.done("environment"), "the next step would begin before pip is there"


def test_a_half_replaced_pip_is_installed_again(tmp_path: Path) -> None:
    programs, half = tmp_path / "bin", tmp_path / "lib/python3.10/site-packages/pip"
    programs.mkdir()
    half.mkdir(parents=True)
    python = programs / "python"
    python.write_text(f"""#!/bin/sh
echo "$@"
[ ! -e {half} ] && printf '#!/bin/sh\necho pip of %s' {tmp_path} >{programs}/pip && chmod 755 {programs}/pip
""")
    python.chmod(0o755)
    place = f"install={tmp_path} dir={tmp_path}; top {tmp_path}"
    script = f"{remote_text('inside.sh', 'setup.sh')}\nset -e; {place}; activate {tmp_path}; activate {tmp_path}; pip\n"
    output = subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == ["-m ensurepip --default-pip", f"pip of {tmp_path}"]


def test_without_a_suitable_python_the_existing_ones_are_listed(site: UpstreamInstall) -> None:
    site.scripts = replace(site.scripts, python=None, python_exact="3.98")
    site.made("directories")
    failure = explain(site.fails("environment"))
    assert failure.line.startswith("No suitable Python: 3.98 is needed, and neither a module, conda nor uv has it.")
    assert f"({MINOR}." in failure.line
    assert "uv or Miniconda" in failure.fix


def test_conda_makes_the_environment_if_no_other_python_fits(site: UpstreamInstall) -> None:
    site.scripts = replace(site.scripts, python=None, python_exact="3.98")
    site.made("directories")
    base = site.home / "miniconda3/bin"
    base.mkdir(parents=True)
    site.bin = base
    site.program("conda", 'echo "$@" >"$HOME/conda"')
    output = site.fails("environment")
    assert any("because nothing else has one that fits" in line for line in output)
    asked = (site.home / "conda").read_text().split()
    assert asked == ["create", "-y", "-q", "-p", site.steps()["environment"].args[0], "python=3.98", "pip"]


def test_uv_fetches_a_python_that_nothing_else_has(site: UpstreamInstall, copying: str) -> None:
    fetched = f"{site.home}/fetched"
    Path(copying).rename(fetched)
    for name in (f"python{MINOR}", "python3"):
        site.program(name, "exit 1")
    find = f'[ -e "$UV_PYTHON_INSTALL_DIR" ] && echo "{fetched}"'
    site.program("uv", f'case $2 in find) {find} ;; install) mkdir "$UV_PYTHON_INSTALL_DIR" ;; esac')
    site.made("directories")
    output = site.run("environment")
    assert site.done("environment"), output
    assert f"uv fetches Python {MINOR}." in output
    assert f"from uv: {fetched}" in output


def test_another_file_in_the_environments_place_is_left_alone(site: UpstreamInstall) -> None:
    use_python(site)
    site.made("directories")
    mine = Path(site.steps()["environment"].args[0]) / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("!")
    assert "Another file or directory" in explain(site.fails("environment")).reason
    assert mine.read_text() == "!"


@pytest.fixture
def ready(site: UpstreamInstall) -> UpstreamInstall:
    """An install with all steps before the setup script completed, without a Python environment."""
    site.scripts = replace(site.scripts, python=None, pins=())
    site.made("directories", "commits", "repository", "image", "link")
    return site


def lines(path: Path) -> Sequence[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_the_setup_runs_once_and_finds_its_image(ready: UpstreamInstall) -> None:
    output = ready.run("setup")
    assert ready.done("setup"), output
    root = ready.install / "published/nemotron4-25.04"
    assert lines(ready.home / "setups") == [f"no token no conda no environment {root}"]
    assert "The image is there" in output
    assert len(lines(ready.home / "imports")) == 1
    assert (root / "nvidia+nemo+25.02.01.sqsh").read_text() == "hsqs\n"


def test_the_setup_imports_a_missing_image_to_its_default_place(ready: UpstreamInstall) -> None:
    image = Path(ready.steps()["image"].results[0])
    image.unlink()
    ready.made("setup")
    link = Path(ready.steps()["link"].results[0])
    assert link.read_text() == "hsqs\n"
    assert [path.name for path in link.parent.iterdir() if "sqsh" in path.name] == [link.name]


def test_an_interrupted_setup_starts_from_the_beginning(ready: UpstreamInstall) -> None:
    (ready.home / "broken").touch()
    ready.fails("setup")
    scripts = ready.install / "published/nemotron4-25.04/dgxc-benchmarking/nemotron"
    assert (scripts / "NeMo").is_dir()
    (ready.home / "broken").unlink()
    ready.made("setup")
    assert (scripts / "NeMo/patched").exists()


def test_the_setup_does_not_run_in_a_changed_checkout(ready: UpstreamInstall) -> None:
    scripts = ready.install / "published/nemotron4-25.04/dgxc-benchmarking/nemotron"
    (scripts / "setup.sh").write_text("echo mine")
    assert explain(ready.fails("setup")).line.endswith("has local changes:  M nemotron/setup.sh")


def test_the_token_comes_from_its_file_and_is_not_an_argument(ready: UpstreamInstall) -> None:
    setup = replace(ready.scripts.setup, needs_hub_token=True)
    ready.scripts = replace(ready.scripts, setup=setup)
    assert explain(ready.fails("setup")).line == "There is no Hugging Face token on the cluster."
    token = ready.home / ".llmb-tui/hugging-face-token"
    token.parent.mkdir()
    token.write_text("hf_secret\n")
    ready.made("setup")
    assert lines(ready.home / "setups")[0].startswith("hf_secret ")
    step = ready.steps()["setup"]
    assert not any("hf_secret" in word for word in (step.work, *step.args))


def test_an_image_that_was_brought_is_not_imported(site: UpstreamInstall) -> None:
    site.made("directories")
    brought = site.install / "offline/nvidia+nemo+25.02.01.sqsh"
    brought.parent.mkdir()
    brought.write_text("hsqs, brought")
    site.made("image")
    assert Path(site.steps()["image"].results[0]).read_text() == "hsqs, brought"
    assert not (site.home / "imports").exists()


@pytest.mark.parametrize("name", KINDS)
def test_a_recipe_installs_the_versions_of_its_release_date(catalog: Catalog, make_plan: MakePlan, name: str) -> None:
    work = steps_of(catalog, make_plan, name)["setup"].work
    wanted = {"llama3.1-24.11": "huggingface-hub==0.26.3", "nemotron4-340b-25.12": "leptonai==0.26.7"}
    assert (wanted.get(name, "torch==2.7.0") in work) is (name != "grok1-25.02")


def test_versions_are_in_force_before_the_setup_script_runs(ready: UpstreamInstall) -> None:
    constraints = Constraints("x.txt", "2025-04-30", "", "", ("torch==2.7.0", "a==1 ; python_version < '3.12'"))
    ready.scripts = replace(ready.scripts, constraints=constraints)
    ready.made("setup")
    variables = dict(line.split("=", 1) for line in lines(ready.home / "versions"))
    assert set(variables) == {"PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT", "UV_CONSTRAINT", "UV_BUILD_CONSTRAINT"}
    assert {Path(path).read_text() for path in variables.values()} == {"torch==2.7.0\na==1 ; python_version < '3.12'\n"}
    ready.scripts = replace(ready.scripts, constraints=replace(constraints, requirements=("torch==2.6.0",)))
    assert not ready.done("setup")


@pytest.mark.usefixtures("copying")
def test_an_install_ends_with_an_import_of_the_launched_module(site: UpstreamInstall) -> None:
    site.made("directories", "repository", "environment")
    module = site.install / "published/nemotron4-25.04/dgxc-benchmarking/nemotron/NeMo/scripts/performance/llm"
    module.mkdir(parents=True)
    launch = module / "pretrain_nemotron4_15b.py"
    launch.write_text("from email import no_such_thing\n")
    assert "a version of email without no_such_thing" in explain(site.fails("proof")).reason
    launch.write_text("if __name__ == '__main__':\n    raise SystemExit('it was run')\n")
    site.made("proof")


@pytest.mark.usefixtures("copying")
def test_pins_come_from_the_folder_that_was_brought(site: UpstreamInstall) -> None:
    site.scripts = replace(site.scripts, pins=(Pin("nothing-like-it==1.0", "", ""),))
    site.made("directories", "environment")
    (site.install / "offline/wheels").mkdir(parents=True)
    failure = explain(site.fails("pins"))
    assert failure.reason == "pip found no version of a package for this Python."
    assert "folder of wheels" in failure.fix
