"""List the runs of NVIDIA's llmb-run, and read the file next to the logs that describes a run.

Sources: `llmb_run/run_config.py` of NVIDIA/dgxc-benchmarking at v25.08 to v26.06.01, which writes
`llmb-config_<job>.yaml` into the job's folder after the submission; `llmb_run/job_logs.py` for the names of the logs.
Values of variables may be tokens, so only values that a plan needs are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.llmb.files import ask, read_yaml
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.validation import NAME, PATH, matches
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.launch.llmb.llmb_run import LlmbRun
from llmb_tui.launch.naming import nemo_run_name

MOST = 40
"""Largest number of listed runs, the newest ones."""
_DEADLINE_S = 45.0
_FILE = re.compile(r".*/workloads/(?P<workload>[^/]+)/(?:.*/)?llmb-config_(?P<job>\d+)[^/]*\.yaml")
_TIME = re.compile(r"[0-9]{1,11}")
# Values that change a plan, stored as variables of the recipe's launch script (v25.12, nemotron4-340b).
_PLANNED = (
    *("MAX_STEPS", "TIME_LIMIT", "STRONG_SCALING", "ENABLE_PROFILE", "PROFILE_START_STEP", "PROFILE_STOP_STEP"),
    *("ENABLE_CHECKPOINT", "LOAD_CHECKPOINT_PATH"),
)


def list_runs(session: Session, roots: Iterable[str], job_id: str | None = None) -> tuple[LlmbRun, ...]:
    """The newest runs of the installations in `roots`, in one remote call; with `job_id`, the runs of that job.

    Raises LlmbError if the cluster cannot be queried, and the errors of `Session.run_script`.
    """
    folders = [root for root in dict.fromkeys(roots) if matches(PATH, root)]
    if not folders or not (job_id is None or re.fullmatch("[0-9]+", job_id)):
        return ()
    texts: dict[str, dict[str, str]] = {}
    for kind, path, text in ask(session, remote_text("llmb_runs.sh"), MOST, [job_id or "", *folders], _DEADLINE_S):
        texts.setdefault(path, {})[kind] = text
    runs = [run_of(path, texts[path]) for path in texts if describes_run(path)]
    return tuple(sorted(runs, key=lambda run: (run.written_at, int(run.job_id)), reverse=True))


def describes_run(path: str) -> bool:
    """True if llmb-run writes a file of that absolute path next to the logs of a run."""
    return _FILE.fullmatch(path) is not None


def run_of(path: str, texts: Mapping[str, str]) -> LlmbRun:
    """Run that a file at this path describes, from the output of `remote/llmb_runs.sh` about it. Pure."""
    match = _FILE.fullmatch(path)
    assert match is not None  # noqa: S101 - the caller has checked `describes_run`
    folder = path.rpartition("/")[0]
    written_at = texts.get("written", "").strip()
    head = LlmbRun(
        match["job"],
        clean_line(match["workload"]),
        clean_line(folder),
        float(written_at) if _TIME.fullmatch(written_at) else 0.0,
    )
    try:
        content = read_yaml(texts.get("run", ""), path)
    except LlmbError as error:
        return replace(head, unreadable=error.why)
    workload, model, job = (_section(content, name) for name in ("workload_info", "model_info", "job_config"))
    variables = _section(job, "env_overrides")
    scale = model.get("scale")
    return replace(
        head,
        release=_release(workload.get("gsw_version")),
        framework=_text(workload.get("framework")),
        size=_text(model.get("model_size")).lower(),
        gpu=_text(model.get("gpu_type")).lower(),
        dtype=_text(model.get("dtype")).lower(),
        scale=scale if isinstance(scale, int) and not isinstance(scale, bool) else 0,
        strong_scaling=job.get("strong_scaling") is True,
        profile=job.get("profile_enabled") is True,
        planned=tuple((name, _text(variables[name])) for name in _PLANNED if name in variables),
        changed=(*_names(variables), *(parameters := _names(_section(job, "model_overrides")))),
        parameters=parameters,
        log=_log(folder, match["job"], texts, _text(_section(content, "cluster_info").get("slurm_account"))),
    )


def _log(folder: str, job_id: str, texts: Mapping[str, str], account: str) -> JobLog | None:
    """Log of a NeMo-Run job: its name is in the folder, else in the batch script, else follows NeMo-Run's rule."""
    match = re.search(rf"(?m)^log-(\S+)_{job_id}_\d+\.out$", texts.get("logs", ""))
    script = texts.get("job", "").strip().strip("\"'")
    derived = nemo_run_name(account, folder.rpartition("/")[2]) if account else ""
    name = match[1] if match else script or derived
    if not matches(NAME, name) or not matches(PATH, folder):
        return None
    return JobLog.of_nemo_run(folder, name)


def _names(changes: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(clean_line(str(name)) for name in changes if name not in _PLANNED)


def _section(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = content.get(name)
    return section if isinstance(section, dict) else {}


def _release(value: object) -> str:
    # Without quotes, 25.10 is a number in YAML.
    return f"{value:.2f}" if isinstance(value, float) else _text(value)


def _text(value: object) -> str:
    return "" if value is None or isinstance(value, (dict, list)) else clean_line(str(value)).strip()
