"""`export` and `verify`: an archive of runs that another person can check, and its check."""

from __future__ import annotations

import argparse
from pathlib import Path

from llmb_tui.cli.output import write
from llmb_tui.cli.user import user_services
from llmb_tui.errors import LlmbError
from llmb_tui.store.scratch import remove_scratch_on_signals


def export_verb(arguments: argparse.Namespace) -> int:
    """Write an archive of finished runs, without asking a cluster."""
    from llmb_tui.answers.evidence import export_answer

    services = user_services(arguments)
    remove_scratch_on_signals()
    suites = [services.suites.load(name) for name in arguments.names if services.suites.has(name)]
    run_ids = [run_id for name in arguments.names for run_id in services.suites.run_ids(name)]
    if not run_ids:
        raise LlmbError("These suites have no runs yet.", "", "Export a suite when its runs are finished.", exit_code=1)
    file = Path(arguments.output)
    manifest = services.exporter.export(run_ids, file, suites, anonymous=arguments.anonymous)
    write(export_answer(file, file.stat().st_size, manifest), arguments)
    return 0


def verify_verb(arguments: argparse.Namespace) -> int:
    """Check an archive. Returns 0 if everything that can be checked agrees, whatever the verdicts are."""
    from llmb_tui.answers.evidence import verification_answer
    from llmb_tui.evidence.verify import verify

    remove_scratch_on_signals()
    verification = verify(Path(arguments.file))
    write(verification_answer(arguments.file, verification), arguments)
    return 0 if verification.agrees else 1
