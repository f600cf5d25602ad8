"""The command of NVIDIA's scripts: the variables that it sets and unsets, and selections without a command."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.rows import rows
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.upstream.command import UpstreamCommand, differences, setup_command, upstream_command
from llmb_tui.launch.upstream.paths import upstream_paths
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Overrides, RunOptions, Selection
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan

GOLDEN = Path(__file__).parent / "golden_upstream"
NEMOTRON, LLAMA, LLAMA_24, GROK = (
    ROWS[n] for n in ("nemotron4-25.04", "llama3.1-25.04", "llama3.1-24.11", "grok1-25.02")
)
NEMOTRON_340B = ROWS["nemotron4-340b-25.12"]
BELOW = "/lustre/llmb/published/nemotron4-25.04/checkpoint"


class Commands:
    """Makes the commands of one row."""

    def __init__(self, catalog: Catalog, make_plan: MakePlan) -> None:
        self._catalog, self._make_plan = catalog, make_plan

    def launch(
        self, row: tuple[str, str, str, str, int], profile: SlurmProfile = PROFILE, **more: object
    ) -> UpstreamCommand:
        return upstream_command(RunRequest(self._catalog.recipe(row[0]), self._make_plan(*row, **more), profile))

    def setup(self, row: tuple[str, str, str, str, int], profile: SlurmProfile = PROFILE) -> UpstreamCommand:
        return setup_command(RunRequest(self._catalog.recipe(row[0]), self._make_plan(*row), profile))


@pytest.fixture(scope="module")
def commands(catalog: Catalog, make_plan: MakePlan) -> Commands:
    return Commands(catalog, make_plan)


def found(command: UpstreamCommand) -> list[tuple[str, str]]:
    return [(problem.field, problem.severity) for problem in command.problems]


@pytest.mark.parametrize("name", ROWS)
def test_setup_and_launch_commands_equal_the_golden_file(commands: Commands, name: str) -> None:
    setup, launch = commands.setup(ROWS[name]), commands.launch(ROWS[name])
    assert f"{setup.text}\n\n{launch.text}\n" == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert setup.problems == launch.problems == ()


def test_every_rows_command_matches_its_plan(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for row in rows(recipe):
            asked = Selection(
                recipe.workload, recipe.release, row.size, row.gpu, row.dtype, row.gpus, row.scaling == "strong"
            )
            run_plan = plan(catalog, asked)
            command = upstream_command(RunRequest(recipe, run_plan, PROFILE))
            says = dict(command.environment)
            assert says["DTYPE"] == row.dtype
            assert says.get("MODEL_SIZE", row.size) == row.size
            assert says.get("GPU_TYPE", row.gpu) == row.gpu
            assert ("STRONG_SCALING" in says) is (row.scaling == "strong")
            if command.arguments[0] == "sbatch":
                assert command.arguments[command.arguments.index("-N") + 1] == str(run_plan.nodes)
            else:
                assert says["JOB_TOTAL_GPUS"] == str(row.gpus)
            assert command.problems == ()


@pytest.mark.parametrize(
    ("row", "options", "sets"),
    [
        (NEMOTRON, RunOptions(profile=True), "ENABLE_PROFILE=true PROFILE_START_STEP=20 PROFILE_STOP_STEP=25"),
        (
            NEMOTRON,
            RunOptions(profile=True, profile_start=3, profile_stop=5),
            "PROFILE_START_STEP=3 PROFILE_STOP_STEP=5",
        ),
        (NEMOTRON, RunOptions(save_checkpoint=True), "ENABLE_CHECKPOINT=true"),
        (NEMOTRON, RunOptions(load_checkpoint=BELOW), f"LOAD_CHECKPOINT_PATH={BELOW}"),
        (LLAMA, RunOptions(profile=True), "ENABLE_PROFILE=true DISABLE_PERFRUN=true"),
        (LLAMA, RunOptions(nccl_trace=True), "ENABLE_NCCLTRACE=true DISABLE_PERFRUN=true"),
        (GROK, RunOptions(nccl_trace=True), "ENABLE_NCCL_TRACE=true"),
        (GROK, RunOptions(profile=True), "RUN_CONF_PROFILE_START_STEP=20 RUN_CONF_PROFILE_STOP_STEP=30"),
        (LLAMA_24, RunOptions(profile=True), "RUN_CONF_PROFILE_START_STEP=20 RUN_CONF_PROFILE_STOP_STEP=30"),
        (NEMOTRON_340B, RunOptions(profile=True), "PROFILE_START_STEP=45 PROFILE_STOP_STEP=50"),
        (NEMOTRON_340B, RunOptions(load_checkpoint="/data/one"), "LOAD_CHECKPOINT_PATH=/data/one"),
    ],
)
def test_options_of_the_run(
    commands: Commands, row: tuple[str, str, str, str, int], options: RunOptions, sets: str
) -> None:
    plain, command = commands.launch(row), commands.launch(row, options=options)
    given = [f"{name}={value}" for name, value in command.environment]
    names = [part.partition("=")[0] for part in sets.split()]
    assert set(sets.split()) <= set(given)
    assert set(names) <= set(plain.unset)
    assert not set(names) & set(command.unset)
    assert command.problems == ()


def test_a_trace_of_grok_goes_elsewhere(commands: Commands) -> None:
    command = commands.launch(GROK, options=RunOptions(nccl_trace=True))
    assert command.results == "/lustre/llmb/published/grok1-25.02/results/25.02-nccl-trace/bf16/314b/64"
    assert command.log == f"{command.results}/log-nemo_grok1_314b_64_%j.out"
    assert command.job_name == "nemo_grok1"


@pytest.mark.parametrize(
    ("row", "more", "sets"),
    [
        (NEMOTRON, {"steps": 20}, {"MAX_STEPS": "20"}),
        (NEMOTRON, {"time_limit": "01:00:00"}, {"SBATCH_TIMELIMIT": "01:00:00"}),
        (LLAMA, {"time_limit": "01:00:00"}, {"TIME_LIMIT": "01:00:00"}),
        (
            LLAMA,
            {"time_limit": "01:00:00", "options": RunOptions(nccl_trace=True)},
            {"SBATCH_TIMELIMIT": "01:00:00"},
        ),
        (NEMOTRON_340B, {"overrides": Overrides(gbs=64)}, {"GBS": "64"}),
        (
            LLAMA_24,
            {"overrides": Overrides(tp=4, pp=18, vp=2, gbs=504, layers=108)},
            {"TP": "4", "PP": "18", "VP": "2", "GBS": "504", "NUM_LAYERS": "108"},
        ),
        (LLAMA_24, {"overrides": Overrides(tp=8, pp=9)}, {}),
    ],
)
def test_numbers_that_were_calculated_manually(
    commands: Commands, row: tuple[str, str, str, str, int], more: dict[str, Any], sets: dict[str, str]
) -> None:
    plain, command = dict(commands.launch(row).environment), commands.launch(row, **more)
    new = {name: value for name, value in command.environment if name not in plain}
    assert {name: value for name, value in new.items() if name not in ("ENABLE_NCCLTRACE", "DISABLE_PERFRUN")} == sets
    assert command.problems == ()


def test_a_time_limit_goes_to_sbatch_if_it_is_called_directly(commands: Commands) -> None:
    assert "--time=02:00:00" in commands.launch(GROK, time_limit="02:00:00").arguments


@pytest.mark.parametrize(
    ("row", "more", "problems"),
    [
        (NEMOTRON, {"overrides": Overrides(tp=4, seq_len=2048)}, [("tp", "error"), ("seq_len", "error")]),
        (NEMOTRON, {"options": RunOptions(load_checkpoint="/elsewhere/one")}, [("load_checkpoint", "error")]),
        (NEMOTRON_340B, {"options": RunOptions(hub_tokenizer=True)}, [("hub_tokenizer", "error")]),
        (NEMOTRON_340B, {"options": RunOptions(save_checkpoint=True)}, [("procedure", "warning")]),
        (LLAMA, {"options": RunOptions(hub_tokenizer=True)}, []),
        (GROK, {"steps": 20}, [("steps", "error")]),
        (GROK, {"steps": 40, "options": RunOptions(profile=True)}, [("steps", "error")]),
        (GROK, {"steps": 50}, []),
        (GROK, {"steps": 10, "options": RunOptions(nccl_trace=True)}, []),
        (("llama3.1@24.11", "405b", "h100", "fp8", 96), {"overrides": Overrides(pp=1)}, [("pp", "error")]),
        (LLAMA_24, {"overrides": Overrides(mbs=2)}, [("mbs", "error")]),
        (LLAMA_24, {"overrides": Overrides(vp=1)}, [("procedure", "warning")]),
    ],
)
def test_settings_that_the_script_cannot_apply(
    commands: Commands,
    row: tuple[str, str, str, str, int],
    more: dict[str, Any],
    problems: list[tuple[str, str]],
) -> None:
    command = commands.launch(row, **more)
    assert found(command) == problems
    assert all(problem.reason and problem.fix for problem in command.problems)


SLURM = replace(
    PROFILE,
    gpu_request="gres",
    memory="500G",
    reservation="tuesday",
    qos="high",
    constraint="gpu&ib",
    slurm_params="wckey=x",
)


def test_a_profiles_slurm_options_reach_a_script_that_nemo_run_submits(commands: Commands) -> None:
    command = commands.launch(NEMOTRON, SLURM)
    assert [pair for pair in command.environment if pair[0].startswith("SBATCH_")][2:] == [
        ("SBATCH_GRES", "gpu:8"),
        ("SBATCH_MEM_PER_NODE", "500G"),
        ("SBATCH_RESERVATION", "tuesday"),
        ("SBATCH_QOS", "high"),
        ("SBATCH_CONSTRAINT", "gpu&ib"),
        ("SBATCH_WCKEY", "x"),
    ]
    assert command.problems == ()


def test_a_profiles_slurm_options_reach_a_script_that_we_submit(commands: Commands) -> None:
    command = commands.launch(GROK, replace(SLURM, exclude="cn[1-2]", segment=4))
    assert command.arguments[7:-1] == (
        *("--gres=gpu:8", "--mem=500G", "--reservation=tuesday", "--qos=high", "--constraint=gpu&ib"),
        *("--segment=4", "--exclude=cn[1-2]", "--wckey=x"),
    )
    assert command.problems == ()


def test_no_gpus_are_requested_if_the_gpu_request_is_none(commands: Commands) -> None:
    profile = replace(PROFILE, gpu_request="none")
    assert "gpu" not in " ".join(commands.launch(GROK, profile).arguments)
    assert not {"SBATCH_GPUS_PER_NODE", "SBATCH_GRES"} & dict(commands.launch(NEMOTRON, profile).environment).keys()
    assert commands.setup(LLAMA_24, profile).unset == ("SLURM_GPUS_PER_NODE",)


@pytest.mark.parametrize(
    ("row", "fields", "problems"),
    [
        (NEMOTRON, {"exclude": "cn1"}, [("exclude", "error")]),
        (NEMOTRON, {"slurm_params": "nodelist=cn1;overcommit"}, [("slurm_params", "error"), ("slurm_params", "error")]),
        (NEMOTRON, {"segment": 4}, [("segment", "warning")]),
        (NEMOTRON, {"mounts": ("/a:/b",)}, [("mounts", "error")]),
        (NEMOTRON, {"cpus_per_task": 8, "vboost": True}, []),
        (LLAMA, {"cpus_per_task": 8}, [("cpus_per_task", "warning")]),
        (NEMOTRON_340B, {"vboost": True, "mounts": ("/a:/b:ro", "/c:/d")}, []),
        (NEMOTRON_340B, {"numa_binding": False}, [("numa_binding", "warning")]),
        (NEMOTRON, {"numa_binding": False}, []),
        (GROK, {"vboost": True}, [("vboost", "warning")]),
        (NEMOTRON, {"env": (("NCCL_IB_HCA", "mlx5"),)}, []),
        (
            NEMOTRON,
            {"env": (("MAX_STEPS", "7"), ("NEMO_HOME", "/a"))},
            [("env.MAX_STEPS", "warning"), ("env.NEMO_HOME", "warning")],
        ),
        (NEMOTRON, {"env": (("NCCL_NVLS_ENABLE", "1"),)}, [("env.NCCL_NVLS_ENABLE", "warning")]),
    ],
)
def test_profile_settings_that_the_procedure_cannot_apply(
    commands: Commands,
    row: tuple[str, str, str, str, int],
    fields: dict[str, object],
    problems: list[tuple[str, str]],
) -> None:
    command = commands.launch(row, replace(PROFILE, **fields))  # type: ignore[arg-type]
    assert found(command) == problems
    assert all(problem.reason and problem.fix for problem in command.problems)


def test_fields_of_a_profile_that_a_script_has_variables_for(commands: Commands) -> None:
    profile = replace(
        PROFILE, vboost=True, mounts=("/a:/b:ro", "/c:/d"), cpus_per_task=8, env=(("NCCL_IB_HCA", "mlx5"),)
    )
    says = dict(commands.launch(NEMOTRON_340B, profile).environment)
    assert (says["ENABLE_VBOOST"], says["RUN_CONF_MOUNTS"], says["NCCL_IB_HCA"]) == ("true", "/a:/b:ro,/c:/d", "mlx5")
    assert dict(commands.launch(NEMOTRON, profile).environment)["CPU_PER_TASK_PINNING"] == "8"


def test_a_variable_that_nvidia_advises_comes_from_the_profile_and_not_from_the_shell(commands: Commands) -> None:
    command = commands.launch(NEMOTRON_340B, replace(PROFILE, env=(("TP_COMM_OVERLAP", "False"),)))
    assert dict(command.environment)["TP_COMM_OVERLAP"] == "False"
    assert "TP_COMM_OVERLAP" not in command.unset
    assert command.problems == ()
    assert "TP_COMM_OVERLAP" in commands.launch(NEMOTRON_340B).unset


def test_a_variable_that_moves_results_is_hidden_from_the_scripts_with_a_warning(commands: Commands) -> None:
    command = commands.launch(LLAMA, replace(PROFILE, env=(("NEMORUN_HOME", "/a"),)))
    assert "NEMORUN_HOME" in command.unset
    (problem,) = command.problems
    assert problem.reason.endswith("the procedure hides it from NVIDIA's scripts.")


def test_a_variable_of_the_profile_does_not_override_the_selection(commands: Commands) -> None:
    command = commands.launch(NEMOTRON, replace(PROFILE, env=(("DTYPE", "bf16"), ("MAX_STEPS", "7"))))
    assert dict(command.environment)["DTYPE"] == "fp8"
    assert "MAX_STEPS" in command.unset


# Report of a script in the pasted text: its environment, arguments and working directory.
_REPORT = f"""#!{sys.executable}
import json, os, sys
json.dump([dict(os.environ), sys.argv[1:], os.getcwd()], open(os.environ["HOME"] + "/seen", "w"))
"""


def pasted(command: UpstreamCommand, home: Path, **shell: str) -> tuple[dict[str, str], list[str], str]:
    """Run the text in a shell with these variables, with stand-ins for the scripts and sbatch."""
    programs = home / "bin"
    programs.mkdir()
    scripts = Path(command.directory)
    scripts.mkdir(parents=True, exist_ok=True)
    for program in (programs / "sbatch", scripts / "launch.sh"):
        program.write_text(_REPORT, encoding="utf-8")
        program.chmod(0o755)
    environment = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", **shell}
    result = subprocess.run(["sh", "-c", command.text], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    environment, arguments, directory = json.loads((home / "seen").read_text(encoding="utf-8"))
    return environment, arguments, directory


def test_the_text_means_the_same_to_a_shell(commands: Commands, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".llmb-tui").mkdir(parents=True)
    (home / ".llmb-tui" / "hugging-face-token").write_text("hf_made-up\n", encoding="utf-8")
    command = commands.launch(LLAMA, replace(PROFILE, install_dir=f"{tmp_path}/in stall"))
    seen, arguments, directory = pasted(command, home, MAX_STEPS="7", ENABLE_PROFILE="true", NEMO_HOME="/old")
    assert seen.items() >= dict(command.environment).items()
    assert not set(command.unset) & seen.keys()
    assert seen["HF_TOKEN"] == "hf_made-up"
    assert seen["VIRTUAL_ENV"] == f"{tmp_path}/in stall/venvs/llama3.1-25.04"
    assert seen["PATH"].startswith(f"{seen['VIRTUAL_ENV']}/bin:")
    assert (arguments, directory) == ([], command.directory)
    assert "hf_" not in command.text


@pytest.mark.parametrize(
    "value", ["a b", "$(touch x)`id`$HOME", "it's", 'say "x"', "!x", "~", "*", "\\", "-n", "ä;&|", ""]
)
@pytest.mark.parametrize("row", [NEMOTRON, GROK])
def test_no_value_means_anything_to_the_shell(
    commands: Commands, tmp_path: Path, row: tuple[str, str, str, str, int], value: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    profile = replace(PROFILE, account=value, install_dir=str(tmp_path / "in"), env=(("ODD", value),))
    command = commands.launch(row, profile)
    seen, arguments, _ = pasted(command, home)
    assert seen["ODD"] == value
    assert (arguments[1] if row is GROK else seen["SBATCH_ACCOUNT"]) == value


def test_a_value_on_two_lines_is_refused(commands: Commands) -> None:
    with pytest.raises(LlmbError, match="does not print"):
        commands.launch(NEMOTRON, replace(PROFILE, env=(("ODD", "a\nb"),)))


def test_nothing_is_run_outside_the_recipes_folder(commands: Commands, tmp_path: Path) -> None:
    text = commands.launch(GROK, replace(PROFILE, install_dir=str(tmp_path))).text
    result = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "sbatch" not in result.stderr


def test_paths_and_names_of_the_launch(catalog: Catalog, make_plan: MakePlan) -> None:
    paths = {
        row[0]: upstream_paths(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE)) for row in ROWS.values()
    }
    old, new = paths["llama3.1@25.04"], paths["nemotron4-340b@25.12"]
    assert old.root == "/lustre/llmb/published/llama3.1-25.04"
    assert old.scripts == f"{old.root}/dgxc-benchmarking/llama3.1"
    assert old.image == f"{old.root}/nvidia+nemo+25.02.01.sqsh"
    assert (new.root, new.scripts) == ("/lustre/llmb", "/lustre/llmb/llmb_repo/nemotron4-340b")
    assert new.image == "/lustre/llmb/images/nvidia+nemo+25.07.01.sqsh"
    assert new.environment == "/lustre/llmb/venvs/nemotron4-340b-25.12"
    assert paths["grok1@25.02"].environment == ""


def test_deviations_from_the_documentation_are_listed(catalog: Catalog) -> None:
    pins, grok, newest = (
        list(differences(catalog.recipe(name))) for name in ("nemotron4@25.04", "grok1@25.02", "nemotron4-340b@25.12")
    )
    assert [text.split()[0] for text in pins[:2]] == ["pyarrow==19.0.1", "bitsandbytes==0.46.0"]
    assert any("a small enroot of ours" in text for text in grok)
    assert not any("==" in text or "half made" in text for text in grok)
    assert "$LLMB_INSTALL/.cache/huggingface" in newest[0]
    assert not any("enroot" in text or "The job of" in text for text in newest)


def test_a_recipe_without_known_scripts_has_no_command(catalog: Catalog, make_plan: MakePlan) -> None:
    recipe = replace(catalog.recipe("grok1@25.02"), upstream=None)
    with pytest.raises(LlmbError, match="cannot be launched with NVIDIA's scripts") as caught:
        upstream_command(RunRequest(recipe, make_plan(*GROK), PROFILE))
    assert caught.value.exit_code == 1


JSON = '{"OccupiedIdleGPUsJobReaper":{"reason":"model_loading"}}'


@pytest.mark.parametrize(
    ("gpu_request", "variable", "option"),
    [
        ("gpus-per-node", ("SBATCH_GPUS_PER_NODE", "h100:8"), "--gpus-per-node=h100:8"),
        ("gres", ("SBATCH_GRES", "gpu:h100:8"), "--gres=gpu:h100:8"),
    ],
)
def test_a_gpu_type_reaches_sbatch(
    commands: Commands, gpu_request: Any, variable: tuple[str, str], option: str
) -> None:
    profile = replace(PROFILE, gpu_request=gpu_request, gpu_type="h100")
    assert variable in commands.launch(NEMOTRON, profile).environment
    assert option in commands.launch(GROK, profile).arguments
    assert option in commands.setup(NEMOTRON, profile).arguments
    assert (variable[0].replace("SBATCH", "SLURM"), variable[1]) in commands.setup(LLAMA_24, profile).environment


def test_a_comment_in_json_is_an_option_of_a_batch_script_only(commands: Commands, tmp_path: Path) -> None:
    profile = replace(PROFILE, install_dir=str(tmp_path / "in"), slurm_params=f"comment={JSON}")
    assert found(commands.launch(NEMOTRON, profile)) == [("slurm_params", "error")]
    command = commands.launch(GROK, profile)
    assert found(command) == found(commands.launch(GROK))
    home = tmp_path / "home"
    home.mkdir()
    assert f"--comment={JSON}" in pasted(command, home)[1]


@pytest.mark.parametrize("row", [NEMOTRON, LLAMA, LLAMA_24, NEMOTRON_340B])
def test_scripts_that_need_a_partition_are_refused_without_one(
    commands: Commands, row: tuple[str, str, str, str, int]
) -> None:
    problem = next(p for p in commands.launch(row, replace(PROFILE, partition="")).problems if p.field == "partition")
    assert (problem.severity, "or choose our script" in problem.fix) == ("error", True)


def test_groks_scripts_name_no_partition_if_the_profile_has_none(commands: Commands) -> None:
    profile = replace(PROFILE, partition="")
    for command in (commands.launch(GROK, profile), commands.setup(GROK, profile)):
        assert "-p" not in command.arguments
        assert "" not in command.arguments
        assert command.arguments[:3] == ("sbatch", "-A", PROFILE.account)
    assert found(commands.launch(GROK, profile)) == found(commands.launch(GROK))


def test_scripts_start_their_ranks_with_pmix_only(commands: Commands) -> None:
    problem = next(p for p in commands.launch(GROK, replace(PROFILE, mpi="pmi2")).problems if p.field == "mpi")
    assert (problem.severity, "--mpi=pmix" in problem.reason) == ("error", True)
