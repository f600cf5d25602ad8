"""Installs for NVIDIA's scripts on a real login node and a real Slurm, for each recipe."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster_files.housekeeping import install_items, remove, select_items
from llmb_tui.launch.step_state import StepState
from llmb_tui.launch.upstream.commits import look_for_commits
from llmb_tui.launch.upstream.install import commits_step
from llmb_tui.request import RunRequest
from tests.kit.waiting import until
from tests.recipes.outside import Outside
from tests.recipes.wheels import python_version
from tests.rig.cluster import Rig
from tests.rig.install.site import BackgroundInstall
from tests.rig.install.upstream_site import UpstreamSite
from tests.rig.line import Line

PYTHON = f"python{python_version()}"
"""Python command of the rig."""

HALFWAY_S = 180.0
"""Seconds within which a step must reach its halfway point, including all earlier steps."""

MakeSite = Callable[..., UpstreamSite]


@pytest.fixture
def make_site(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSite]:
    """A function that creates install directories, with the stand-ins' presets and a NeMo with few dependencies.

    `tests/rig/upstream` installs each recipe with all its dependencies.
    """
    outside.need_little()
    sites: list[UpstreamSite] = []
    outside.use_presets(monkeypatch)
    catalog = load_presets()

    def make(name: str = "nemotron4-25.04") -> UpstreamSite:
        sites.append(UpstreamSite(outside.rig, catalog, name))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


def not_done(states: dict[str, StepState]) -> dict[str, str]:
    """Steps that are not done, each with its state and a short reason: a short report then shows the failure."""
    return {
        kind: f"{state.status}: {state.detail} {state.reason}"
        for kind, state in states.items()
        if state.status != "done"
    }


def give_token(site: UpstreamSite, token: str) -> None:
    site.rig.as_operator("mkdir -p ~/.llmb-tui && cat >~/.llmb-tui/hugging-face-token", stdin=f"{token}\n", check=True)


# A killed step is started again


@contextmanager
def half_an_environment(rig: Rig) -> Iterator[Path]:
    """Python creates environments without pip, and does not end. Yields a path that exists once Python waits."""
    mark, program = rig.knobs / "hold" / "venv.reached", rig.directory / "bin" / PYTHON
    program.write_text(
        f'#!/bin/sh\n[ "$1 $2" != "-m venv" ] || {{ /usr/bin/{PYTHON} -m venv --without-pip "$3"; '
        f'touch /run/rig/hold/venv.reached; sleep 600; }}\nexec /usr/bin/{PYTHON} "$@"\n'
    )
    program.chmod(0o755)
    try:
        yield mark
    finally:
        program.unlink()


@contextmanager
def silent_index(outside: Outside) -> Iterator[socket.socket]:
    """pip's index accepts connections, but does not answer."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(HALFWAY_S)
        path = outside.rig.home / ".config/pip/pip.conf"
        before = path.read_text()
        path.write_text(f"[global]\nindex-url = http://127.0.0.1:{server.getsockname()[1]}/simple\ntimeout = 600\n")
        try:
            yield server
        finally:
            path.write_text(before)


HOLDS = {
    "commits": "NeMo.git",
    "repository": "dgxc-benchmarking.git",
    "cloning": "NeMo.git",
    "setup": "megatron-core",
}


@contextmanager
def halfway(outside: Outside, kind: str) -> Iterator[Callable[[UpstreamSite], object]]:
    """Hold a step within the block after part of its work. Yields the condition that is true when the step waits."""
    rig = outside.rig
    with ExitStack() as stack:
        if kind == "image":
            stack.enter_context(rig.knob("import-s", "600"))
            yield lambda site: len(list(site.folder(kind).glob("cache/*"))) > 4
        elif kind == "pins":
            index = stack.enter_context(silent_index(outside))
            yield lambda _: index.accept()
        elif kind in HOLDS:
            (rig.knobs / f"hold/{HOLDS[kind]}.reached").unlink(missing_ok=True)  # left by another step
            stack.enter_context(rig.knob(f"hold/{HOLDS[kind]}"))
            yield lambda _: (rig.knobs / f"hold/{HOLDS[kind]}.reached").exists()
        else:
            mark = stack.enter_context(half_an_environment(rig))
            yield lambda _: mark.exists()


def until_halfway(site: UpstreamSite, kind: str, is_halfway: Callable[[UpstreamSite], object]) -> None:
    """Install until a step waits halfway."""
    run = BackgroundInstall(site.installer())
    until(lambda: run.over or is_halfway(site), f"{kind} is halfway", deadline_s=HALFWAY_S)
    run.stop.set()
    assert site.by_kind(run.join())[kind].status == "running", site.log(kind)


def test_killed_failed_and_removed_steps_are_repeated(make_site: MakeSite, outside: Outside) -> None:
    """All cases use one directory, so that the earlier steps run only once."""
    site = make_site("nemotron4-340b-25.12")
    kinds = list(site.steps())
    killed = ("commits", "repository", "environment", "image", "setup")
    for step in (*killed[:-1], "cloning", "setup"):
        kind = "setup" if step == "cloning" else step
        assert not_done(site.run(kinds[kinds.index(kind) - 1])) == {}
        assert leftovers(site) == []
        with halfway(outside, step) as is_halfway:
            until_halfway(site, kind, is_halfway)
            site.kill(kind)
            state = site.look()[kind]
            assert (state.status, state.detail[:26]) == ("missing", "An earlier attempt was kil"), step
    a_package_that_cannot_be_built_is_reported(site)
    assert not_done(site.run()) == {}, site.log("setup")
    assert {kind for kind in kinds if site.attempts(kind) == 2} == set(killed)
    assert leftovers(site) == []
    what_is_removed_is_made_anew(site)


def a_package_that_cannot_be_built_is_reported(site: UpstreamSite) -> None:
    with site.rig.knob("faults/pip", "megatron-core"):
        state = failed(site.run(), "setup")
    assert (state.reason, "step's log" in state.fix) == ("A package could not be built.", True)


def what_is_removed_is_made_anew(site: UpstreamSite) -> None:
    items, _ = install_items(site.session(), load_presets(), (), {})
    things = {thing.path: thing.kind for thing in items if not thing.kept}
    environment, repository = f"venvs/{site.name}", site.paths.repository.removeprefix(f"{site.install}/")
    assert (things[environment], things[repository]) == ("environment", "repository")
    assert "image" in things.values()
    assert remove(site.session(), select_items(items, [environment, repository])).kept == {}
    assert not Path(site.paths.repository).exists()
    assert not Path(site.paths.environment).exists()
    assert not_done(site.run()) == {}, site.log("setup")
    assert Path(site.paths.environment, "bin", "python").exists()


def leftovers(site: UpstreamSite) -> list[Path]:
    """Leftover temporary files next to a result, whose names begin with a dot, and old environments."""
    parents = {path.parent for path in (Path(site.paths.repository), Path(site.paths.image))}
    hidden = [path for parent in parents for path in parent.glob(".*") if path.name not in (".llmb-tui", ".cache")]
    return hidden + list(site.install.glob("venvs/*.old.*"))


def test_a_cancelled_setup_job_restarts_and_killed_pins_continue(make_site: MakeSite, outside: Outside) -> None:
    """An interrupted setup of this release would leave NeMo without its patch, and the next would not report it."""
    site = make_site()
    with outside.rig.knob("hold/reinstall"):
        until_halfway(site, "setup", lambda _: (outside.rig.knobs / "hold/reinstall.reached").exists())
        (job,) = outside.rig.squeue()
        outside.rig.as_root(["scancel", job], check=True)
        until(lambda: site.look()["setup"].status == "failed", "the failed setup is seen")
        assert site.look()["setup"].reason == "The job of this step was cancelled."
    (Path(site.paths.scripts) / "NeMo" / "half").touch()
    assert not_done(site.run("setup")) == {}
    assert not (Path(site.paths.scripts) / "NeMo" / "half").exists()
    set_up = site.log("setup")
    with halfway(outside, "pins") as is_halfway:
        until_halfway(site, "pins", is_halfway)
        site.kill("pins")
    assert not_done(site.run()) == {}
    assert (site.attempts("pins"), site.log("setup")) == (2, set_up)


def test_a_killed_setup_with_a_terminal_restarts_and_reports_the_hubs_limit(
    make_site: MakeSite, outside: Outside
) -> None:
    site = make_site("llama3.1-24.11")
    give_token(site, outside.hub_token)
    with silent_index(outside) as index:
        until_halfway(site, "setup", lambda _: index.accept())
        site.kill("setup")
    for fault, reason in (("gated", "rejected the token"), ("token", "rejected the token"), ("too-many", "limits")):
        with outside.rig.knob("faults/hub", fault):
            assert reason in failed(site.run(), "setup").reason, site.log("setup")
    assert not_done(site.run()) == {}, site.log("setup")
    assert "huggingface-cli" not in " ".join(outside.rig.operator_processes())


# Impossible installs fail before any long step


def failed(states: dict[str, StepState], kind: str) -> StepState:
    kinds = list(states)
    index = kinds.index(kind)
    assert [states[name].status for name in kinds[:index]] == ["done"] * index, states
    assert states[kind].status == "failed"
    return states[kind]


def test_a_commit_that_is_not_public_is_reported_before_anything_long(make_site: MakeSite, outside: Outside) -> None:
    site = make_site("nemotron4-340b-25.12")
    real = "f260da5d65fccdf9c78283647f7497d9428fb654"
    with outside.lost(real):
        state = failed(site.run(), "commits")
    assert state.detail == f"Commit {outside.commit(real)} is not in https://github.com/NVIDIA/NeMo.git."
    assert "may not be public" in state.reason
    assert "Choose another GPU type" in state.fix
    assert not (site.install / "venvs").exists()
    assert not_done(site.run("commits")) == {}


def test_an_early_check_finds_the_same_as_the_install(make_site: MakeSite, outside: Outside) -> None:
    site = make_site("nemotron4-340b-25.12")
    step = commits_step(RunRequest(site.recipe, site.plan, site.profile))
    assert step is not None
    real = "f260da5d65fccdf9c78283647f7497d9428fb654"
    with outside.lost(real):
        check = look_for_commits(site.session(), step)
    reason = f"Commit {outside.commit(real)} is not in https://github.com/NVIDIA/NeMo.git. It may not be public."
    assert (check.status, check.found) == ("failed", reason)
    assert look_for_commits(site.session(), step).status == "ok"
    with outside.no_internet():
        assert look_for_commits(site.session(), step).status == "warning"
        outside.bring(site.install / "offline")
        assert look_for_commits(site.session(), step).status == "ok"
    assert [path.name for path in site.install.iterdir()] == ["offline"]


def test_an_unreachable_git_host_is_reported(make_site: MakeSite, outside: Outside) -> None:
    site = make_site()
    with outside.no_internet():
        state = failed(site.run(), "commits")
    assert state.reason == "The node cannot reach the git host."
    assert "`offline`" in state.fix


def test_a_login_node_without_the_required_python_reports_its_versions(make_site: MakeSite) -> None:
    site = make_site("nemotron4-340b-25.12")
    assert site.recipe.upstream
    site.recipe = replace(site.recipe, upstream=replace(site.recipe.upstream, python_exact="3.98"))
    state = failed(site.run(), "environment")
    assert state.detail.startswith("No suitable Python: 3.98 is needed, and neither a module, conda nor uv has it.")
    assert "/usr/bin/python3" in state.detail
    assert "uv or Miniconda" in state.fix


def test_a_module_has_the_python_that_the_login_node_lacks(make_site: MakeSite, outside: Outside) -> None:
    """Only login shells have modules."""
    site = make_site("nemotron4-340b-25.12")
    version, modules = python_version(), site.install / "modules"
    script = f"""
    mkdir -p {modules} && ln -s /usr/bin/{PYTHON} {modules}/python3
    cat >~/.bash_profile <<'END'
module() {{
    case $1 in
        -t) printf '/opt/modules:\\npython/\\npython/3.9.1\\npython/{version}.2(default)\\n' >&2 ;;
        load) [ "$2" = python/{version}.2 ] && PATH={modules}:$PATH ;;
    esac
}}
END
    """
    outside.rig.as_operator(script, check=True)
    programs = [outside.rig.directory / "bin" / name for name in (PYTHON, "python3")]
    for program in programs:
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    try:
        states = site.run("environment")
    finally:
        for program in programs:
            program.unlink()
        outside.rig.as_operator("rm ~/.bash_profile", check=True)
    assert not_done(states) == {}, site.log("environment")
    assert f"of module python/{version}.2: {modules}/python3" in site.log("environment")


@pytest.mark.parametrize("name", ["llama3.1-24.11", "llama3.1-25.04"])
def test_a_missing_token_is_reported_before_anything_long(make_site: MakeSite, outside: Outside, name: str) -> None:
    site = make_site(name)
    state = failed(site.run(), "token")
    assert (state.key_would_help, state.detail) == ("hugging-face", "There is no Hugging Face token on the cluster.")
    assert not list((site.install / "images").iterdir())
    give_token(site, outside.hub_token)
    assert not_done(site.run("token")) == {}


# Existing files, and files that a user supplies


def test_an_existing_image_is_used(make_site: MakeSite, outside: Outside) -> None:
    """`enroot import` in the setup script would fail because the file exists."""
    site = make_site("grok1-25.02")
    image = Path(site.steps()["image"].results[0])
    outside.rig.as_operator(f"mkdir {image.parent} && echo hsqs >{image}", check=True)
    assert not_done(site.run()) == {}
    assert site.attempts("image") == 0
    assert Path(site.paths.image).read_text() == "hsqs\n"
    assert "The image is there" in site.log("setup")


@pytest.mark.parametrize("name", ["nemotron4-25.04", "nemotron4-340b-25.12"])
def test_a_cluster_without_internet_is_fed_from_a_folder(make_site: MakeSite, outside: Outside, name: str) -> None:
    site = make_site(name)
    with outside.no_internet(), outside.rig.knob("faults/enroot", "no-network"):
        assert failed(site.run(), "commits").reason == "The node cannot reach the git host."
        outside.bring(site.install / "offline")
        image = Path(site.steps()["image"].results[0]).name
        outside.rig.as_operator(f"echo hsqs >'{site.install}/offline/{image}'", check=True)
        states = site.run()
        assert not_done(states) == {}, site.log("setup")
    assert f"NeMo comes from {site.install}/offline/NeMo.bundle." in site.log("commits")
    assert f"The image comes from {site.install}/offline/{image}." in site.log("image")
    assert f"Packages come from {site.install}/offline/wheels, and from nowhere else." in site.log("setup")


def test_a_lost_line_stops_nothing(make_site: MakeSite, outside: Outside) -> None:
    site = make_site("grok1-25.02")
    outside.rig.set("import-s", "3")
    with Line(outside.rig.port("login")) as line:
        site.profile = line.profile(site.profile)
        run = BackgroundInstall(site.installer())
        until((site.folder("image") / "cache").exists, "the image is being fetched")
        line.cut()
        assert not_done(site.by_kind(run.join())) == {}
    assert all(site.attempts(kind) == 1 for kind in site.steps())
