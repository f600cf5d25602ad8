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
from pathlib import Path

from llmb_tui.cli import clusters, doctor
from llmb_tui.cli.output import print_json, print_line, say
from llmb_tui.cli.planning import launchable
from llmb_tui.cli.runs import exit_code, final_line, line_teller
from llmb_tui.cli.screen import show
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.watch.report import document

# What a headless demo runs unless a workload is named; other flags hold for it too.
DEFAULT = {"workload": "nemotron4@25.04", "size": "15b", "gpu": "h100", "dtype": "fp8", "scale": 64}


def demo_verb(arguments: argparse.Namespace) -> int:
    """Start the embedded cluster, then the wizard or the headless journey."""
    root = demo_folder()
    with DemoCluster(root / "cluster") as cluster:
        services = Services(Places(root / "config", root / "state"))
        services.save_profile(cluster.profile)
        try:
            if arguments.headless or not (sys.stdin.isatty() and sys.stdout.isatty()):
                return _headless(arguments, services, cluster.profile.name)
            return show(services)
        finally:
            services.close()


def demo_folder() -> Path:
    """Where the demo lives between calls, so that who quits and comes back finds the run again."""
    folder = Path(tempfile.gettempdir()) / f"llmb-tui-demo-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise Trouble(
            f"{folder} is not a private folder of yours.", fix="Move it away, or set TMPDIR to another folder."
        )
    return folder


def _headless(arguments: argparse.Namespace, services: Services, cluster: str) -> int:
    """Each stage in plain lines; with `--json` they go to stderr and the run's document to stdout."""
    if arguments.workload is None:
        vars(arguments).update({name: value for name, value in DEFAULT.items() if getattr(arguments, name) is None})
    tell = say if arguments.json else print_line
    made = launchable(services, arguments)
    chosen = made.selection
    tell(
        f"plan: {chosen.workload}@{chosen.release} {chosen.size} {chosen.dtype}, {chosen.scale} × {chosen.gpu.upper()}"
    )
    tell(f"connect: {cluster}, {services.profile(cluster).notice}")
    tell("preflight:")
    doctor.check(services, cluster, made, tell)
    tell("install:")
    clusters.install(services, cluster, made, tell)
    tell("render: nemo-run writes the batch script")
    draft = services.draft(cluster, made)
    tell("submit:")
    run = clusters.submit(services, draft, tell)
    tell("watch:")
    state = services.monitor(run.id).watch(line_teller(tell), threading.Event())
    if arguments.json:
        print_json(document(services.runs().load(run.id), state))
    tell(final_line(state))
    return exit_code(state)
