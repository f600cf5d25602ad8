"""`export`, `verify`: runs as one file that a second person can check, and checking it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmb_tui.cli.output import print_json, print_line, print_table, say
from llmb_tui.cli.user import user_services
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import byte_size, percent, step_time
from llmb_tui.language.states import finding_label, state_label
from llmb_tui.language.text import plural
from llmb_tui.store.scratch import removed_when_terminated

if TYPE_CHECKING:
    from llmb_tui.evidence.verify import Verification


def export_verb(arguments: argparse.Namespace) -> int:
    """Write an archive of runs that are over. No cluster is asked."""
    from llmb_tui.evidence.anonymous import WHAT
    from llmb_tui.evidence.verify import CAVEAT

    services = user_services(arguments)
    removed_when_terminated()
    suites = [services.suites.load(name) for name in arguments.names if services.suites.has(name)]
    run_ids = [run_id for name in arguments.names for run_id in services.suites.run_ids(name)]
    if not run_ids:
        raise Trouble("None of these suites has a run yet.", "", "Export it when it is over.", exit_code=1)
    file = Path(arguments.output)
    manifest = services.exporter.export(run_ids, file, suites, anonymous=arguments.anonymous)
    size = file.stat().st_size
    if arguments.json:
        said = {name: getattr(manifest, name) for name in ("runs", "suites", "anonymous", "left_out")}
        missing = [{"id": one.run, "what": one.what, "why": one.why} for one in manifest.missing]
        print_json({"file": str(file), "bytes": size, "files": len(manifest.members), **said, "missing": missing})
        return 0
    runs, files = plural(len(manifest.runs), "run"), plural(len(manifest.members), "file")
    print_line(f"{file}: {runs}, {files}, {byte_size(size)}")
    for one in manifest.missing:
        say(f"run {one.run}: missing is the {one.what}. {one.why}")
    if manifest.anonymous:
        say(WHAT)
    say(f"Left out: {', '.join(manifest.left_out)}. `llmb-tui verify` checks the file. {CAVEAT}")
    return 0


def verify_verb(arguments: argparse.Namespace) -> int:
    """Check an archive; 0 where all that can be checked agrees, whatever the verdicts are."""
    from llmb_tui.evidence.verify import CAVEAT, verify

    removed_when_terminated()
    verification = verify(Path(arguments.file))
    if arguments.json:
        print_json({"file": arguments.file, "caveat": CAVEAT, **_document(verification)})
    else:
        rows = [(one.run or "–", one.what, finding_label(one.outcome).text, one.words) for one in verification.findings]
        print_table(("run", "what", "outcome", "found"), rows)
        for run_id, result in verification.results.items():
            print_line(f"run {run_id}: {_result_words(result)}")
        agrees = "All that can be checked agrees." if verification.agrees else "Not all of it agrees."
        print_line(f"{agrees} {CAVEAT}")
    return 0 if verification.agrees else 1


def _document(verification: Verification) -> dict[str, Any]:
    manifest = verification.manifest
    return {
        "agrees": verification.agrees,
        "made_by": manifest.made_by,
        "anonymous": manifest.anonymous,
        "runs": [{"id": run_id, **result} for run_id, result in verification.results.items()],
        "findings": [
            {"id": one.run or None, "what": one.what, "outcome": one.outcome, "found": one.words}
            for one in verification.findings
        ],
    }


def _result_words(result: Any) -> str:
    """How a run came out, by what was worked out again."""
    verdict, step = result["verdict"], result["step_time_s"]
    time = f"{step_time(step)} by the rule ({result['rule']})" if step is not None else "no step time by the rule"
    said = f"{verdict['result']} {percent(verdict['ratio'] * 100)} of {verdict['against']}" if verdict else "no verdict"
    simulated = "simulated, " if result["simulated"] else ""
    state = state_label(result["state"]).word
    return f"{simulated}{state}, {result['steps_done']} of {result['steps_total']} steps, {time}, {said}"
