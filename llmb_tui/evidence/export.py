"""`export`: finished runs of this machine → one file. No cluster is asked; nothing secret goes in."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from llmb_tui import __version__
from llmb_tui.catalog.load import PresetProblem, read_preset
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.evidence.against_accounting import accounting_findings
from llmb_tui.evidence.against_preset import PresetCheck
from llmb_tui.evidence.anonymous import Anonymizer
from llmb_tui.evidence.contents import KEPT_FILES, RunFolders, differences, is_wording, missing_of
from llmb_tui.evidence.findings import Finding
from llmb_tui.evidence.manifest import (
    KIND,
    LEFT_OUT,
    SCHEMA,
    Manifest,
    Member,
    Missing,
    NotThisArchive,
    PresetMember,
)
from llmb_tui.evidence.pack import TooDense, pack, sum_of, unpack
from llmb_tui.evidence.secret_search import SecretSearch, known_secrets
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.states import FindingOutcome, state_label
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, Runs
from llmb_tui.store import documents
from llmb_tui.store.files import file_trouble, text_in
from llmb_tui.store.scratch import removed_after, scratch
from llmb_tui.suites.suite import Suite
from llmb_tui.toml.read import builtin_dir, toml_files
from llmb_tui.watch.logcopy import copy_names

_PIECE = 1 << 20


class Exporter:
    """Makes archives of what one user's places hold."""

    def __init__(self, runs: Runs, profiles: Iterable[ClusterProfile], own_presets: Path, *, threshold: float) -> None:
        """`own_presets`: directory of the user's own; `threshold`: the smallest ratio that passes."""
        self._runs = runs
        self._profiles = {profile.name: profile for profile in profiles}
        self._own_presets = own_presets
        self._threshold = threshold

    def export(
        self, run_ids: Iterable[str], file: Path, suites: Iterable[Suite] = (), *, anonymous: bool = False
    ) -> Manifest:
        """Write the archive of these runs, and of suites that were named; it was read back before it has its name.

        Raises Trouble (exit code 1) where a run is not over, a secret would go in, or the file exists, and Trouble
        where it cannot be written; then there is no file.
        """
        runs = [self._over(run_id) for run_id in dict.fromkeys(run_ids)]
        _refuse_existing(file)
        with scratch("llmb-tui-export-") as folder:
            manifest = self._staged(folder, runs, {suite.id: suite for suite in suites}, anonymous=anonymous)
            _write(manifest, folder, file)
        return manifest

    def _over(self, run_id: str) -> Run:
        run = self._runs.load(run_id)
        if run.going or run.submission in ("unknown", "intended"):
            how = "goes on" if run.submission == "submitted" else f"is {state_label(run.submission).word}"
            raise Trouble(
                f"Run {run.id} {how}, and was not exported.",
                "What an archive says of a run must not change any more.",
                f"`llmb-tui watch {run.id}` says when it is over.",
                exit_code=1,
            )
        return run

    def _staged(self, folder: Path, runs: Sequence[Run], suites: Mapping[str, Suite], *, anonymous: bool) -> Manifest:
        """Put everything into a private folder as it will lie in the archive; what that is."""
        names = [name for run in runs for name in self._copied(run, folder)]
        here = RunFolders(folder, self._threshold)
        for suite_id, suite in suites.items():
            names.append(f"suites/{suite_id}.json")
            _put(folder / names[-1], documents.text_of(suite))
        presets = self._copied_presets(runs, folder)
        names += dict.fromkeys(name for of_it in presets.values() for name in of_it)
        if anonymous:
            texts = {recipe_id: folder / name for recipe_id, (name, *_) in presets.items()}
            before = {run.id: (here.derived(run.id)["result.json"], _findings(here, run.id, texts)) for run in runs}
            builtin = {recipe.id for _, recipe in _builtin_presets()}
            published = {name for recipe_id, of_it in presets.items() if recipe_id in builtin for name in of_it}
            self._anonymize(folder, runs, [name for name in names if name not in published])
            here = RunFolders(folder, self._threshold)
            for run_id, (result, findings) in before.items():
                _require_the_same_numbers(run_id, result, here)
                _require_no_worse(run_id, findings, _findings(here, run_id, texts))
            for suite_id, suite in suites.items():
                _require_the_same_runs(suite, folder / "suites" / f"{suite_id}.json")
        missing: list[Missing] = []
        for run in runs:
            now = here.runs.load(run.id)
            missing += missing_of(now, here.records.record(now), folder / "runs" / run.id)
            for name, document in here.derived(run.id).items():
                names.append(f"runs/{run.id}/{name}")
                _put(folder / names[-1], json.dumps(document, indent=1, allow_nan=False).encode() + b"\n")
            if (recipe_id := run.plan.selection.recipe_id) not in presets:
                missing.append(Missing(run.id, "preset", f"This program has none of {recipe_id}."))
        self._require_no_secret(folder, names := sorted(names))
        members = {name: Member(name, *sum_of(folder / name)) for name in names}
        return Manifest(
            KIND,
            SCHEMA,
            f"llmb-tui {__version__}",
            anonymous,
            self._threshold,
            runs=tuple(run.id for run in runs),
            suites=tuple(sorted(suites)),
            presets=tuple(PresetMember(recipe, name, members[name].sha256) for recipe, (name, *_) in presets.items()),
            missing=tuple(missing),
            left_out=LEFT_OUT,
            members=tuple(members.values()),
        ).sealed()

    def _copied(self, run: Run, folder: Path) -> list[str]:
        """The files of a run's folder, in the private one; their names in the archive."""
        source, target = self._runs.folder(run.id), folder / "runs" / run.id
        with self._runs.lock(run.id), file_trouble("copy", source):
            here = [name for name in (*copy_names(source), *KEPT_FILES) if (source / name).is_file()]
            for name in here:
                _put(target / name, _pieces(source / name))
                if name in copy_names(source):
                    moment = (source / name).stat().st_mtime
                    os.utime(target / name, (moment, moment))
        _put(target / "run.json", documents.text_of(run))
        return [f"runs/{run.id}/{name}" for name in ("run.json", *here)]

    def _copied_presets(self, runs: Sequence[Run], folder: Path) -> dict[str, list[str]]:
        """By the recipe's id the names of its files in the archive, its preset first."""
        wanted, found = {run.plan.selection.recipe_id for run in runs}, dict[str, list[str]]()
        for file, recipe in (*_builtin_presets(), *_presets(self._own_presets)):
            if recipe.id in wanted and recipe.id not in found:
                files = {f"presets/{recipe.id.replace('@', '-')}.toml": file}
                if recipe.upstream and recipe.upstream.constraints:
                    name = f"constraints/{recipe.upstream.constraints.file}"
                    files[f"presets/{name}"] = file.parent / name
                for name, source in files.items():
                    with file_trouble("read", source):
                        _put(folder / name, source.read_bytes())
                found[recipe.id] = [*files]
        return found

    def _anonymize(self, folder: Path, runs: Sequence[Run], names: Sequence[str]) -> None:
        anonymizer = Anonymizer()
        for run in runs:
            anonymizer.learn_run(run, self._profiles.get(run.cluster))
            anonymizer.learn_accounting(folder / "runs" / run.id / ACCOUNTING)
        for name in names:
            anonymizer.learn_file(folder / name)
        for name in names:
            path = folder / name
            moment = path.stat().st_mtime
            if path.name == "run.json" or name.startswith("suites/"):
                anonymizer.replace_in_record(path)
            elif path.name == ACCOUNTING:
                anonymizer.replace_in_accounting(path)
            else:
                anonymizer.replace_in(path)
            os.utime(path, (moment, moment))

    def _require_no_secret(self, folder: Path, names: Iterable[str]) -> None:
        search = SecretSearch(known_secrets(self._profiles.values()))
        for name in names:
            if found := search.find(folder / name):
                line, kind = found
                raise Trouble(
                    f"Nothing was exported: {name}, line {line}, holds {kind}.",
                    "No secret may be in an archive, and what was said of a run is not changed silently.",
                    "If it is one, make it invalid where it was made, take it out of that file of the run, and export "
                    "again.",
                    exit_code=1,
                )


@cache
def _builtin_presets() -> list[tuple[Path, Recipe]]:
    return _presets(builtin_dir())


def _presets(directory: Path) -> list[tuple[Path, Recipe]]:
    """Those of a directory that can be read, each with its file."""
    found = []
    for file in toml_files([directory]):
        with contextlib.suppress(PresetProblem):
            found.append((file, read_preset(file)))
    return found


def _put(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Into the private folder."""
    with file_trouble("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)


def _pieces(path: Path) -> Iterator[bytes]:
    """Of a file: a log may be long. What fails as it is read is told of this file, not of the one that is written."""
    with file_trouble("read", path), path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _require_the_same_numbers(run_id: str, before: Mapping[str, Any], now: RunFolders) -> None:
    """Raise Trouble (exit code 1) where a name that was replaced is part of what a log says."""
    try:
        found = now.derived(run_id)["result.json"]
    except Trouble as trouble:
        raise _is_a_word(f"Run {run_id}", trouble.why or trouble.what) from trouble
    for place, *_ in differences(before, found):
        if not is_wording(place):
            raise _is_a_word(f"Run {run_id}", place)


def _findings(runs: RunFolders, run_id: str, presets: Mapping[str, Path]) -> dict[str, Finding]:
    """What `verify` will find of a run beside its numbers, by what was checked; `presets`: by their recipes."""
    run = runs.runs.load(run_id)
    accounting = text_in(runs.runs.folder(run_id) / ACCOUNTING)
    of_accounting = accounting_findings(run, runs.history.result(run_id), accounting)
    preset = presets.get(run.plan.selection.recipe_id)
    of_preset = PresetCheck().findings(run, runs.runs.script(run_id), preset)
    return {finding.what: finding for finding in (*of_accounting, *of_preset)}


def _require_no_worse(run_id: str, before: Mapping[str, Finding], now: Mapping[str, Finding]) -> None:
    """Raise Trouble (exit code 1) where a name that was replaced is part of what the preset or accounting says."""
    order: tuple[FindingOutcome, ...] = ("agrees", "unknown", "differs")
    for what, finding in now.items():
        outcome = before[what].outcome if what in before else "agrees"
        if order.index(finding.outcome) > order.index(outcome):
            raise _is_a_word(f"Run {run_id}", f"{what}: {finding.words}")


def _require_the_same_runs(suite: Suite, path: Path) -> None:
    """Raise Trouble (exit code 1) where a name that was replaced is a word of a suite's document."""
    try:
        now = documents.load(path, Suite)
    except Trouble as trouble:
        raise _is_a_word(f"Suite {suite.id}", trouble.why) from trouble
    if [row.run_id for row in now.rows] != [row.run_id for row in suite.rows]:
        raise _is_a_word(f"Suite {suite.id}", "the ids of its runs")


def _is_a_word(of: str, where: str) -> Trouble:
    return Trouble(
        f"{of} was not exported: without names it would say something else.",
        f"A host or user is called as a word of its record, log or preset is ({where.removesuffix('.')}).",
        "Export it without --anonymous.",
        exit_code=1,
    )


def _too_dense(manifest: Manifest) -> Trouble:
    """Whoever checks an archive guards against one that fills a disk, and cannot know that this one is ours."""
    largest = max(manifest.members, key=lambda member: member.size)
    return Trouble(
        "Nothing was exported: nobody could check the archive.",
        f"{largest.name} is {byte_size(largest.size)} that says nearly the same again and again, and `verify` unpacks "
        "nothing that becomes so much more than it is.",
        "Export it together with more runs, or leave that run out.",
    )


def _refuse_existing(file: Path) -> None:
    if os.path.lexists(file):
        raise Trouble(f"{file} exists, and is not overwritten.", "", "Name another file, or remove it.", exit_code=1)
    if not file.parent.is_dir():
        raise Trouble(f"There is no directory {file.parent}.", "", "Make it, or name another.", exit_code=1)


def _write(manifest: Manifest, folder: Path, file: Path) -> None:
    """Write the archive beside its name, read it back, and give it its name unless somebody else has taken that."""
    with file_trouble("write", file):
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".unfinished")
    with removed_after(Path(name)):
        with file_trouble("write", file), open(handle, "wb") as out:
            pack(manifest, folder, out)
            out.flush()
            os.fsync(out.fileno())
        with scratch("llmb-tui-export-") as again:
            why = "Another one was read than was written."
            try:
                same = unpack(Path(name), again) == manifest
            except TooDense as trouble:
                raise _too_dense(manifest) from trouble
            except NotThisArchive as trouble:
                same, why = False, trouble.why
        if not same:
            what = "Nothing was exported: the archive could not be read back."
            raise Trouble(what, why, "Export fewer runs at a time.")
        try:
            os.link(name, file)
        except FileExistsError:
            _refuse_existing(file)
        except OSError:  # a file system without hard links
            _refuse_existing(file)
            os.rename(name, file)
