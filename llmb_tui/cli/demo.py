"""`demo`: the whole journey on the embedded cluster, on a screen or, without a terminal, headless.

The only place that knows of the embedded cluster: everything past its profile is the same as for a real one.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from llmb_tui.cli.output import print_json, print_line, say
from llmb_tui.cli.screen import show
from llmb_tui.cli.user import is_terminal, settings_of
from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.store.paths import Places

if TYPE_CHECKING:
    from llmb_tui.cluster.slurm.profile import SlurmProfile

# What a headless demo runs unless a workload is named; other flags hold for it too.
DEFAULT = {"workload": "nemotron4@25.04", "size": "15b", "gpu": "h100", "dtype": "fp8", "scale": "64"}


def demo_verb(arguments: argparse.Namespace) -> int:
    """Start the embedded cluster, then the wizard or the headless journey."""
    root = demo_folder()
    places = Places(root / "config", root / "state")
    services = Services(places, settings_of(places, arguments), read_only=arguments.read_only)
    with ExitStack() as stack:
        if not arguments.headless and is_terminal(sys.stdin) and is_terminal(sys.stdout):
            return _on_screen(services, root, stack)
        profile = _start(services, root, stack)
        stack.callback(services.clusters.close)
        return _headless(arguments, services, profile)


def _on_screen(services: Services, root: Path, stack: ExitStack) -> int:
    """The first frame is painted before the cluster is there; who leaves while it starts waits for that."""
    starting = threading.Lock()

    def start() -> None:
        with starting:
            _start(services, root, stack)

    services.before_start = start
    try:
        return show(services)
    finally:
        starting.acquire()


def _start(services: Services, root: Path, stack: ExitStack) -> SlurmProfile:
    """Start the cluster until the stack is closed, and save how to reach it."""
    from llmb_tui.demo.cluster import DemoCluster

    profile = stack.enter_context(DemoCluster(root / "cluster")).profile
    services.clusters.save(profile)
    return profile


def demo_folder() -> Path:
    """Where the demo lives between calls, so that who quits and comes back finds the run again."""
    folder = Path(tempfile.gettempdir()) / f"llmb-tui-demo-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise Trouble(
            f"{folder} is not a private folder of yours.", fix="Move it away, or set TMPDIR to another folder."
        )
    return folder


def _headless(arguments: argparse.Namespace, services: Services, profile: SlurmProfile) -> int:
    """Each stage in plain lines; with `--json` they go to stderr and the run's document to stdout."""
    from llmb_tui.cli import clusters
    from llmb_tui.cli.planning import launchable
    from llmb_tui.cli.run_lines import line_teller
    from llmb_tui.cli.runs import exit_code, final_line
    from llmb_tui.watch.report import document

    if arguments.workload is None:
        vars(arguments).update({name: value for name, value in DEFAULT.items() if getattr(arguments, name) is None})
    tell = say if arguments.json else print_line
    plan = launchable(services, arguments)
    selection = plan.selection
    tell(
        f"plan: {selection.workload}@{selection.release} {selection.size} {selection.dtype}, "
        f"{selection.scale} × {selection.gpu.upper()}"
    )
    tell(f"connect: {profile.name}, {profile.notice}")
    tell("preflight:")
    request = services.request(profile.name, plan)
    report = clusters.check(services, request, tell)
    tell("install:")
    clusters.install(services, request, tell)
    tell("render: nemo-run writes the batch script")
    prepared = services.launcher.prepare(request)
    tell("submit:")
    run = clusters.submit(services, prepared, report, tell)
    tell("watch:")
    state = services.feed.monitor(run.id).watch(line_teller(tell), threading.Event())
    run = services.runs.load(run.id)
    if arguments.json:
        print_json(document(run, state))
    tell(final_line(state))
    return exit_code(run, state)
