from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct import render as room
from llmb_tui.launch.direct.render import WarmRenderer, render
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.selection import RunOptions
from llmb_tui.request import RunRequest
from tests.kit.unknown_user import use_unknown_user_id
from tests.kit.waiting import until
from tests.launch.launch_cases import PROFILE, ROWS, RUN_ID, MakePlan, MakeSpec

JSON = '{"OccupiedIdleGPUsJobReaper":{"exemptIdleTimeMins":"90","reason":"model_loading"}}'

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmRenderer]:
    """One renderer for all golden scripts, because no script depends on an earlier one."""
    renderer = WarmRenderer()
    yield renderer
    renderer.close()


@pytest.mark.parametrize("name", ROWS)
def test_the_script_equals_the_golden_script(make_spec: MakeSpec, warm: WarmRenderer, name: str) -> None:
    """`LLMB_TUI_WRITE_GOLDEN=1` writes the scripts again: read the difference before you commit it."""
    _compare(name, render(make_spec(*ROWS[name])))
    _compare(name, warm(make_spec(*ROWS[name])))


def test_a_segment_is_in_the_script_if_slurm_supports_it(
    catalog: Catalog, warm: WarmRenderer, make_plan: MakePlan
) -> None:
    row = ROWS["nemotron4-340b-25.12"]
    spec = launch_spec(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE), RUN_ID, (24, 5))
    _compare("segment", warm(spec))


@pytest.mark.parametrize("name", ["nemotron4-340b-25.12", "llama3.1-24.11"])
def test_a_profiled_run_gives_the_golden_script(make_spec: MakeSpec, warm: WarmRenderer, name: str) -> None:
    options = RunOptions(profile=True, profile_start=20, profile_stop=25)
    _compare(f"{name}-nsys", warm(make_spec(*ROWS[name], options=options)))


def test_pinning_and_vboost_give_the_golden_script(make_spec: MakeSpec, warm: WarmRenderer) -> None:
    profile = replace(PROFILE, cpus_per_task=14, vboost=True, memory="1900G")
    _compare("pinned", warm(make_spec(*ROWS["nemotron4-25.04"], profile=profile)))


def test_additional_inputs_of_a_run_are_mounted_in_the_golden_script(make_spec: MakeSpec, warm: WarmRenderer) -> None:
    options = RunOptions(hub_tokenizer=True, load_checkpoint="/lustre/me/checkpoint")
    _compare("options", warm(make_spec(*ROWS["llama3.1-25.04"], options=options)))


def test_a_profile_with_everything_gives_the_golden_script(make_spec: MakeSpec, warm: WarmRenderer) -> None:
    """Segments need Slurm 24.05: see the preflight."""
    profile = replace(
        PROFILE,
        gpu_request="gres",
        reservation="bench",
        qos="gold",
        constraint="gpu&memory",
        segment=16,
        exclude="cn[003,007]",
        slurm_params="nodelist=n1,n2;comment=mine and yours;hold",
        mounts=("/data:/data:ro+rprivate", "/lustre/x:/x"),
        env=(("NCCL_DEBUG", "INFO"), ("NCCL_NVLS_ENABLE", "it's $HOME")),
    )
    _compare("profile", warm(make_spec(*ROWS["nemotron4-340b-25.12"], profile=profile)))


def _compare(name: str, script: str) -> None:
    golden = GOLDEN / f"{name}.sh"
    if os.environ.get("LLMB_TUI_WRITE_GOLDEN"):
        golden.write_text(script)
    assert script == golden.read_text()
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("gpu_request", "line"),
    [("gres", "#SBATCH --gres=gpu:8"), ("none", None)],  # the golden scripts cover gpus-per-node
)
def test_gpus_are_requested_as_the_site_wants_it(make_spec: MakeSpec, gpu_request: str, line: str | None) -> None:
    profile = replace(PROFILE, gpu_request=gpu_request)  # type: ignore[arg-type]
    script = render(make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=profile))
    requests = [each for each in script.splitlines() if each.startswith(("#SBATCH --gres", "#SBATCH --gpu"))]
    assert requests == ([line] if line else [])


@pytest.mark.parametrize("name", ROWS)
def test_names_in_the_script_are_those_of_the_spec(make_spec: MakeSpec, name: str) -> None:
    spec = make_spec(*ROWS[name])
    script = (GOLDEN / f"{name}.sh").read_text()
    assert f"#SBATCH --job-name={spec.job_name}\n" in script
    log = spec.log.training.rpartition("/")[2].replace("%r", "${SLURM_RESTART_COUNT:-0}")
    assert f"srun --output {spec.task_dir}/{log} " in script
    assert f"{spec.task_dir}:/nemo_run " in script


# Values that the shell would interpret; `is_option` rejects quotes, backslashes, $ and `.
HOSTILE = (
    ("distribution", "*:block"),
    ("comment", "(id) {id} ~ !1"),
    ("hint", "a;b&c|d<e>f"),
    ("nodelist", "n[1-2] ~ a#"),
)

WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20).filter(
    str.isprintable
)


# Each example runs a script, so failures are not shrunk.
@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(WORDS, min_size=20, max_size=60), values=st.lists(WORDS, min_size=5, max_size=20))
def test_arguments_and_environment_arrive_as_they_were_given(
    make_spec: MakeSpec, tmp_path: Path, arguments: list[str], values: list[str]
) -> None:
    spec = replace(
        make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64),
        command=("python", "$HOME `id` \"'\\", *arguments),
        srun=(*HOSTILE, ("end-of-options", None)),
        env=tuple((f"NAME_{index}", value) for index, value in enumerate(values)),
    )
    options, command, environment = _run(render(spec), tmp_path)
    assert (command, environment) == ([*spec.command], dict(spec.env))
    assert {f"--{name}={value}" for name, value in HOSTILE} <= set(options)


@pytest.mark.parametrize(
    "value", [f"(touch /tmp/x) {word}" for word in ("a;b", "* ?", "%j", "<x", "!1", "a#", "&", "-N 9")]
)
def test_an_option_of_sbatch_cannot_leave_its_line(make_spec: MakeSpec, value: str) -> None:
    """NeMo-Run quotes the options; sbatch reads a quoted text as one word, as the tests on real Slurm show."""
    spec = replace(make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64), options=(("comment", value),))
    lines = [line for line in render(spec).splitlines() if line.startswith("#SBATCH --comment")]
    assert [shlex.split(line)[1:] for line in lines] == [[f"--comment={value}"]]


@pytest.mark.parametrize(
    ("fields", "lines", "absent"),
    [
        ({"gpu_type": "h100"}, ["#SBATCH --gpus-per-node=h100:8"], "--gres"),
        ({"gpu_type": "h100", "gpu_request": "gres"}, ["#SBATCH --gres=gpu:h100:8"], "--gpus-per-node"),
        ({"partition": ""}, ["#SBATCH --account=research_llm_bench"], "--partition"),
        ({"slurm_params": f"comment={JSON}"}, [f"#SBATCH --comment='{JSON}'"], "none"),
        # sbatch removes one backslash of two, also between single quotes.
        ({"slurm_params": r"comment={\"a\":1};"}, [r"""#SBATCH --comment='{\\"a\\":1}'"""], "none"),
    ],
)
def test_what_sites_require_is_in_the_script(
    make_spec: MakeSpec, warm: WarmRenderer, fields: dict[str, Any], lines: list[str], absent: str
) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=replace(PROFILE, **fields))
    script = warm(spec).splitlines()
    assert set(lines) <= set(script)
    assert not [line for line in script if line.startswith(f"#SBATCH {absent}")]


@pytest.mark.parametrize(("mpi", "notes"), [("pmi2", ("srun --mpi=pmi2",)), ("pmix", ())])
def test_ranks_start_with_the_mpi_type_of_the_profile(
    make_spec: MakeSpec, warm: WarmRenderer, mpi: str, notes: tuple[str, ...]
) -> None:
    spec = make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=replace(PROFILE, mpi=mpi))
    assert re.findall(r"--mpi=(\w+)", warm(spec)) == [mpi]
    assert tuple(note for note in spec.notes if "mpi" in note) == notes


def _run(script: str, folder: Path) -> tuple[list[str], list[str], dict[str, str]]:
    """Run the script with an srun that records its options, the command and the environment."""
    programs, heard = folder / "bin", folder / "heard"
    programs.mkdir(exist_ok=True)
    recorder = (
        f"#!{sys.executable}\nimport json, os, sys\nif 'hostname' not in sys.argv:\n"
        f"    json.dump([sys.argv, dict(os.environ)], open({str(heard)!r}, 'w'))\n"
    )
    for name, program in (("srun", recorder), ("scontrol", "#!/bin/sh\necho node1\n")):
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONUTF8": "1", "SLURM_JOB_NODELIST": "node1", "HOME": "/nowhere"}
    subprocess.run(["bash"], input=script.encode(), env=environment, check=True, capture_output=True)
    words, variables = json.loads(heard.read_text())
    command = words[words.index("--end-of-options") + 1 :]
    return words, command, {name: value for name, value in variables.items() if name.startswith("NAME_")}


def test_a_spec_from_elsewhere_is_checked_again(make_spec: MakeSpec) -> None:
    spec = replace(make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64), partition="batch\n#SBATCH --wrap=id")
    with pytest.raises(LlmbError) as caught:
        render(spec)
    assert caught.value.exit_code == 1


@pytest.fixture
def spec(make_spec: MakeSpec) -> LaunchSpec:
    return make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64)


@pytest.mark.parametrize(
    ("name", "why", "fix"),
    [
        ("tempfile.TemporaryDirectory", "No usable temporary directory found in ['/tmp']", "set TMPDIR to another"),
        ("tempfile.TemporaryFile", "No space left on device", "set TMPDIR to another"),
        ("subprocess.Popen", "Resource temporarily unavailable", "Try again"),
    ],
)
def test_a_nemo_run_that_cannot_start_is_reported_with_a_fix(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch, name: str, why: str, fix: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOENT, why)

    monkeypatch.setattr(name, refuse)
    for renderer in (render, WarmRenderer()):
        with pytest.raises(LlmbError) as caught:
            renderer(spec)
        assert (caught.value.why, caught.value.exit_code) == (f"{why}.", 2)
        assert fix in caught.value.fix


def _shadow_nemo_run(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    (folder / "nemo_run.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.usefixtures("_cold_renderer")
def test_a_broken_nemo_run_is_reported_with_its_error_message(
    spec: LaunchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _shadow_nemo_run(
        tmp_path, monkeypatch, "raise ModuleNotFoundError(\"No module named 'leptonai.api.v1' \\x1b[31m\")"
    )
    with pytest.raises(LlmbError) as caught:
        render(spec)
    assert caught.value.why == "nemo-run: ModuleNotFoundError: No module named 'leptonai.api.v1'"
    assert caught.value.exit_code == 2
    assert caught.value.fix


@pytest.mark.usefixtures("_cold_renderer")
def test_a_nemo_run_that_hangs_is_ended_with_its_children(
    spec: LaunchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(str(child.pid))\ntime.sleep(600)"
    )
    _shadow_nemo_run(tmp_path, monkeypatch, code)
    with pytest.raises(LlmbError, match="could not be rendered"):
        render(spec, deadline_s=3)
    assert _ended(pids.read_text())


def _ended(pid: str) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, check=False).stdout
    return state[:1] in (b"", b"Z")


@pytest.mark.usefixtures("_cold_renderer")
def test_output_of_nemo_run_does_not_reach_the_script(
    spec: LaunchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome to this site')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert render(spec).startswith("#!/bin/bash\n")


@pytest.mark.usefixtures("_cold_renderer")
def test_scripts_are_rendered_without_a_home_too(
    spec: LaunchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import pwd\n\ndef unknown(uid):\n    raise KeyError(uid)\n\npwd.getpwuid = unknown\n"
    (tmp_path / "sitecustomize.py").write_text(code)  # for the rendering process
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    use_unknown_user_id(monkeypatch)
    assert render(spec).startswith("#!/bin/bash\n")


@pytest.mark.usefixtures("_cold_renderer")
def test_rendering_leaves_nothing_behind(spec: LaunchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", None)
    render(spec)
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Rendering processes, in the order of their start."""
    processes, popen = [], subprocess.Popen

    def noting(*given: Any, **named: Any) -> subprocess.Popen[bytes]:
        processes.append(popen(*given, **named))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", noting)
    return processes


def test_a_warm_renderer_keeps_one_process_until_it_is_closed(
    spec: LaunchSpec, started: list[subprocess.Popen[bytes]]
) -> None:
    renderer = WarmRenderer()
    assert renderer(spec) == renderer(spec)
    (process,) = started
    assert process.poll() is None
    renderer.close()
    assert process.poll() is not None


def test_a_warm_renderer_that_was_killed_is_started_again(
    spec: LaunchSpec, started: list[subprocess.Popen[bytes]]
) -> None:
    renderer = WarmRenderer()
    script = renderer(spec)
    started[0].kill()
    started[0].wait()
    assert renderer(spec) == script
    renderer.close()
    assert len(started) == 2


def test_an_idle_warm_renderer_is_ended(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(room, "IDLE_S", 0.0)
    WarmRenderer()(spec)
    assert started[0].wait(60) is not None


ASKING = """
import sys
from llmb_tui.launch.direct import render
worker = render._Worker()
worker._link.sendall(sys.argv[1].encode())
print(worker._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("_cold_renderer")
@pytest.mark.parametrize("asked", [False, True])
def test_a_warm_renderer_ends_with_its_program(tmp_path: Path, spec: LaunchSpec, asked: bool) -> None:
    """Its private directory is removed with it, also during a rendering."""
    request = f"{json.dumps(asdict(spec))}\n" if asked else ""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", ASKING, request], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as program:
        assert program.stdout is not None
        worker = program.stdout.readline().decode().strip()
        assert list(tmp_path.iterdir())
        assert not _ended(worker)
        program.kill()
        until(lambda: _ended(worker), "the worker has ended")
    assert not list(tmp_path.iterdir())


SECRETS = ("hf_abcdefghijklmnop", "nvapi-abcdefghijklmnop")


def test_no_script_holds_a_secret(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a secret of this process' environment, nor the path where the cluster stores one."""
    for name, value in zip(("HF_TOKEN", "NGC_API_KEY"), SECRETS, strict=True):
        monkeypatch.setenv(name, value)
    script = render(make_spec(*ROWS["llama3.1-25.04"], options=RunOptions(hub_tokenizer=True)))
    assert not [secret for secret in SECRETS if secret in script]
    assert "HF_TOKEN=" not in script
