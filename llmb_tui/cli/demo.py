"""`demo`: the whole journey on an embedded cluster, on a screen or, without a terminal, headless.

Only this module knows the embedded clusters: all others see a profile, as of a real cluster.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from llmb_tui.cli.output import print_json, print_line, print_status
from llmb_tui.cli.screen import run_screen
from llmb_tui.cli.user import is_terminal, settings_from_flags
from llmb_tui.errors import LlmbError
from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths

if TYPE_CHECKING:
    from llmb_tui.cluster.profile import ClusterProfile

# Selection of a headless demo without `--workload`, by kind of cluster; the other flags replace parts of it.
DEFAULT = {
    "slurm": {"workload": "nemotron4@25.04", "size": "15b", "gpu": "h100", "dtype": "fp8", "scale": "64"},
    "runai": {"workload": "nemotron4-340b@25.12", "size": "340b", "gpu": "h100", "dtype": "bf16", "scale": "256"},
}


def demo_verb(arguments: argparse.Namespace) -> int:
    """Start the embedded cluster, and then the wizard or the headless journey."""
    root = demo_folder()
    paths = UserPaths(root / "config", root / "state")
    services = Services(paths, settings_from_flags(paths, arguments), read_only=arguments.read_only)
    with ExitStack() as stack:
        if not arguments.headless and is_terminal(sys.stdin) and is_terminal(sys.stdout):
            return _on_screen(services, lambda: _start(arguments.cluster, services, root, stack))
        profile = _start(arguments.cluster, services, root, stack)
        stack.callback(services.clusters.close)
        return _headless(arguments, services, profile)


def _on_screen(services: Services, start: Callable[[], object]) -> int:
    """Paint the first frame before the cluster has started. A user who quits meanwhile waits for the start."""
    starting = threading.Lock()

    def start_with_lock() -> None:
        with starting:
            start()

    services.before_start = start_with_lock
    try:
        return run_screen(services)
    finally:
        starting.acquire()


def _start(kind: str, services: Services, root: Path, stack: ExitStack) -> ClusterProfile:
    """Start a cluster that lives until the stack is closed, and save its profile."""
    if kind == "runai":
        from llmb_tui.cluster.runai.cluster import runai_of
        from llmb_tui.demo.runai.site import DemoRunai

        site = stack.enter_context(DemoRunai(root / "runai"))
        services.clusters.save(site.profile)
        runai_of(services.clusters.cluster(site.profile)).secret.give(site.app_secret)
        return site.profile
    from llmb_tui.demo.cluster import DemoCluster

    profile = stack.enter_context(DemoCluster(root / "cluster")).profile
    services.clusters.save(profile)
    return profile


def demo_folder() -> Path:
    """Folder of the demo's state, in which the next call finds the runs again."""
    folder = Path(tempfile.gettempdir()) / f"llmb-tui-demo-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise LlmbError(
            f"{folder} cannot be the demo's folder.",
            "It is not a directory that only you can access.",
            "Move it away, or set TMPDIR to another folder.",
        )
    return folder


def _headless(arguments: argparse.Namespace, services: Services, profile: ClusterProfile) -> int:
    """Print each stage as lines; with `--json`, print them to stderr and the run's document to stdout."""
    from llmb_tui.cli import clusters
    from llmb_tui.cli.planning import launchable_plan
    from llmb_tui.cli.run_lines import line_printer
    from llmb_tui.cli.runs import exit_code, final_line
    from llmb_tui.launch.procedure_loader import procedure
    from llmb_tui.watch.report import document

    if arguments.workload is None:
        default = DEFAULT[arguments.cluster]
        vars(arguments).update({name: value for name, value in default.items() if getattr(arguments, name) is None})
    emit = print_status if arguments.json else print_line
    plan = launchable_plan(services, arguments)
    selection = plan.selection
    emit(
        f"plan: {workload_label(selection.recipe_id, selection.size, selection.dtype)}, "
        f"{gpus_label(selection.scale, selection.gpu)}"
    )
    emit(f"connect: {profile.name}, {profile.notice}")
    emit("preflight:")
    request = services.request(profile.name, plan)
    report = clusters.run_preflight(services, request, emit)
    emit("install:")
    clusters.install(services, request, emit)
    emit(f"render: {procedure(request.procedure).script_title.lower()}")
    prepared = services.launcher.prepare(request)
    emit("submit:")
    run = clusters.submit(services, prepared, report, emit)
    emit("watch:")
    state = services.feed.monitor(run.id).watch(line_printer(run, emit), threading.Event())
    run = services.runs.load(run.id)
    if arguments.json:
        print_json(document(run, state))
    emit(final_line(run, state))
    return exit_code(run, state)
