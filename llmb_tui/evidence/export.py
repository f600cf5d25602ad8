"""`export`: write finished runs of this machine into one file. No cluster is asked; no secret is included."""

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
from llmb_tui.catalog.load import PresetError, read_preset
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import LlmbError
from llmb_tui.evidence.against_accounting import accounting_findings
from llmb_tui.evidence.against_preset import PresetCheck
from llmb_tui.evidence.anonymous import Anonymizer
from llmb_tui.evidence.contents import KEPT_FILES, RunFolders, differences, is_wording, missing_of
from llmb_tui.evidence.findings import Finding
from llmb_tui.evidence.manifest import (
    KIND,
    LEFT_OUT,
    SCHEMA,
    ArchiveError,
    Manifest,
    Member,
    Missing,
    PresetMember,
)
from llmb_tui.evidence.pack import ArchiveTooDenseError, pack, sum_of, unpack
from llmb_tui.evidence.secret_search import SecretSearch, known_secrets
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.states import FindingOutcome, state_label
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, Runs
from llmb_tui.store import documents
from llmb_tui.store.files import explained_errors, text_in
from llmb_tui.store.scratch import remove_abandoned, removed_after, scratch
from llmb_tui.suites.suite import Suite
from llmb_tui.toml.read import builtin_dir, toml_files
from llmb_tui.watch.logcopy import copy_names

_PIECE = 1 << 20


class Exporter:
    """Makes archives from the data of one user on this machine."""

    def __init__(self, runs: Runs, profiles: Iterable[ClusterProfile], own_presets: Path, *, threshold: float) -> None:
        """`own_presets`: directory of the user's presets; `threshold`: the smallest ratio that passes."""
        self._runs = runs
        self._profiles = {profile.name: profile for profile in profiles}
        self._own_presets = own_presets
        self._threshold = threshold

    def export(
        self, run_ids: Iterable[str], file: Path, suites: Iterable[Suite] = (), *, anonymous: bool = False
    ) -> Manifest:
        """Write the archive of these runs and suites; it gets its name only after it was read back successfully.

        Raises LlmbError (exit code 1) if a run is active, a secret would be included, or the file exists, and LlmbError
        if the file cannot be written; no file remains then.
        """
        runs = [self._over(run_id) for run_id in dict.fromkeys(run_ids)]
        _refuse_existing(file)
        with scratch("llmb-tui-export-") as folder:
            manifest = self._staged(folder, runs, {suite.id: suite for suite in suites}, anonymous=anonymous)
            _write(manifest, folder, file)
        return manifest

    def _over(self, run_id: str) -> Run:
        run = self._runs.load(run_id)
        if run.is_active or run.submission in ("unknown", "intended"):
            how = "is active" if run.submission == "submitted" else f"is {state_label(run.submission).word}"
            raise LlmbError(
                f"Run {run.id} {how} and was not exported.",
                "The contents of an archive must be final.",
                f"`llmb-tui watch {run.id}` shows when it has ended.",
                exit_code=1,
            )
        return run

    def _staged(self, folder: Path, runs: Sequence[Run], suites: Mapping[str, Suite], *, anonymous: bool) -> Manifest:
        """Put everything into a private folder in the structure of the archive; return its manifest."""
        names = [name for run in runs for name in self._copied(run, folder)]
        here = RunFolders(folder, self._threshold)
        for suite_id, suite in suites.items():
            names.append(f"suites/{suite_id}.json")
            _put(folder / names[-1], documents.text_of(suite))
        presets = self._copied_presets(runs, folder)
        names += dict.fromkeys(name for files in presets.values() for name in files)
        if anonymous:
            texts = {recipe_id: folder / name for recipe_id, (name, *_) in presets.items()}
            before = {run.id: (here.derived(run.id)["result.json"], _findings(here, run.id, texts)) for run in runs}
            builtin = {recipe.id for _, recipe in _builtin_presets()}
            published = {name for recipe_id, files in presets.items() if recipe_id in builtin for name in files}
            self._anonymize(folder, runs, [name for name in names if name not in published])
            here = RunFolders(folder, self._threshold)
            for run_id, (result, findings) in before.items():
                _require_the_same_numbers(run_id, result, here)
                _require_no_worse(run_id, findings, _findings(here, run_id, texts))
            for suite_id, suite in suites.items():
                _require_the_same_runs(suite, folder / "suites" / f"{suite_id}.json")
        missing: list[Missing] = []
        for run in runs:
            staged = here.runs.load(run.id)
            missing += missing_of(staged, here.records.record(staged), folder / "runs" / run.id)
            for name, document in here.derived(run.id).items():
                names.append(f"runs/{run.id}/{name}")
                _put(folder / names[-1], json.dumps(document, indent=1, allow_nan=False).encode() + b"\n")
            if (recipe_id := run.plan.selection.recipe_id) not in presets:
                missing.append(Missing(run.id, "preset", f"This program has no preset of {recipe_id}."))
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
        """Copy the files of a run's folder into the private one; return their names in the archive."""
        source, target = self._runs.folder(run.id), folder / "runs" / run.id
        with self._runs.lock(run.id), explained_errors("copy", source):
            here = [name for name in (*copy_names(source), *KEPT_FILES) if (source / name).is_file()]
            for name in here:
                _put(target / name, _pieces(source / name))
                if name in copy_names(source):
                    moment = (source / name).stat().st_mtime
                    os.utime(target / name, (moment, moment))
        _put(target / "run.json", documents.text_of(run))
        return [f"runs/{run.id}/{name}" for name in ("run.json", *here)]

    def _copied_presets(self, runs: Sequence[Run], folder: Path) -> dict[str, list[str]]:
        """Copy the presets; return the names of their files in the archive by recipe id, the preset itself first."""
        wanted, files_by_recipe = {run.plan.selection.recipe_id for run in runs}, dict[str, list[str]]()
        for file, recipe in (*_builtin_presets(), *_presets(self._own_presets)):
            if recipe.id in wanted and recipe.id not in files_by_recipe:
                files = {f"presets/{recipe.id.replace('@', '-')}.toml": file}
                if recipe.upstream and recipe.upstream.constraints:
                    name = f"constraints/{recipe.upstream.constraints.file}"
                    files[f"presets/{name}"] = file.parent / name
                for name, source in files.items():
                    with explained_errors("read", source):
                        _put(folder / name, source.read_bytes())
                files_by_recipe[recipe.id] = [*files]
        return files_by_recipe

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
            if match := search.find(folder / name):
                line, kind = match
                raise LlmbError(
                    f"Nothing was exported: {name}, line {line}, contains {kind}.",
                    "An archive must not contain a secret, and evidence is never changed silently.",
                    "If it is a secret, revoke it where it was issued, remove it from that file of the run, and export "
                    "again.",
                    exit_code=1,
                )


@cache
def _builtin_presets() -> list[tuple[Path, Recipe]]:
    return _presets(builtin_dir())


def _presets(directory: Path) -> list[tuple[Path, Recipe]]:
    """Readable presets of a directory, each with its file."""
    presets = []
    for file in toml_files([directory]):
        with contextlib.suppress(PresetError):
            presets.append((file, read_preset(file)))
    return presets


def _put(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file in the private folder."""
    with explained_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)


def _pieces(path: Path) -> Iterator[bytes]:
    """Content of a file in pieces, because a log may be long. A read error names this file, not the archive."""
    with explained_errors("read", path), path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _require_the_same_numbers(run_id: str, before: Mapping[str, Any], now: RunFolders) -> None:
    """Raise LlmbError (exit code 1) if a replaced name is part of the data that is read from a log."""
    try:
        derived = now.derived(run_id)["result.json"]
    except LlmbError as error:
        raise _is_a_word(f"Run {run_id}", error.why or error.what) from error
    for place, *_ in differences(before, derived):
        if not is_wording(place):
            raise _is_a_word(f"Run {run_id}", place)


def _findings(runs: RunFolders, run_id: str, presets: Mapping[str, Path]) -> dict[str, Finding]:
    """Findings that `verify` will have for a run besides its numbers, by what was checked; `presets`: by recipe id."""
    run = runs.runs.load(run_id)
    accounting = text_in(runs.runs.folder(run_id) / ACCOUNTING)
    of_accounting = accounting_findings(run, runs.history.result(run_id), accounting)
    preset = presets.get(run.plan.selection.recipe_id)
    of_preset = PresetCheck().findings(run, runs.runs.script(run_id), preset)
    return {finding.what: finding for finding in (*of_accounting, *of_preset)}


def _require_no_worse(run_id: str, before: Mapping[str, Finding], now: Mapping[str, Finding]) -> None:
    """Raise LlmbError (exit code 1) if a replaced name is part of the comparison with the preset or accounting."""
    order: tuple[FindingOutcome, ...] = ("agrees", "unknown", "differs")
    for what, finding in now.items():
        outcome = before[what].outcome if what in before else "agrees"
        if order.index(finding.outcome) > order.index(outcome):
            raise _is_a_word(f"Run {run_id}", f"{what}: {finding.words}")


def _require_the_same_runs(suite: Suite, path: Path) -> None:
    """Raise LlmbError (exit code 1) if a replaced name is a word of a suite's document."""
    try:
        anonymous = documents.load(path, Suite, only_finite=True)
    except LlmbError as error:
        raise _is_a_word(f"Suite {suite.id}", error.why) from error
    if [row.run_id for row in anonymous.rows] != [row.run_id for row in suite.rows]:
        raise _is_a_word(f"Suite {suite.id}", "the ids of its runs")


def _is_a_word(subject: str, where: str) -> LlmbError:
    return LlmbError(
        f"{subject} was not exported: replacing names would change its content.",
        f"A host or user name is also an ordinary word in its record, log or preset ({where.removesuffix('.')}).",
        "Export it without --anonymous.",
        exit_code=1,
    )


def _too_dense(manifest: Manifest) -> LlmbError:
    """The error for an archive that `verify` would refuse, because it looks like one made to fill a disk."""
    largest = max(manifest.members, key=lambda member: member.size)
    return LlmbError(
        "Nothing was exported: the archive could not be verified.",
        f"{largest.name} has {byte_size(largest.size)} of nearly identical content, and `verify` unpacks no archive "
        "that becomes so much larger than its file.",
        "Export it together with more runs, or without that run.",
    )


def _refuse_existing(file: Path) -> None:
    if os.path.lexists(file):
        raise LlmbError(f"{file} exists and is not overwritten.", "", "Name another file, or remove it.", exit_code=1)
    if not file.parent.is_dir():
        raise LlmbError(
            f"The directory {file.parent} does not exist.", "", "Create it, or enter another path.", exit_code=1
        )


def _write(manifest: Manifest, folder: Path, file: Path) -> None:
    """Write the archive under a temporary name, read it back, and rename it unless the name was taken meanwhile."""
    remove_abandoned(file.parent, f".{file.name}.", ".unfinished")
    with explained_errors("write", file):
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".unfinished")
    with removed_after(Path(name)):
        with explained_errors("write", file), open(handle, "wb") as out:
            pack(manifest, folder, out)
            out.flush()
            os.fsync(out.fileno())
        with scratch("llmb-tui-export-") as again:
            why = "The content read differs from the content written."
            try:
                same = unpack(Path(name), again) == manifest
            except ArchiveTooDenseError as error:
                raise _too_dense(manifest) from error
            except ArchiveError as error:
                same, why = False, error.why
        if not same:
            what = "Nothing was exported: the archive could not be read back."
            raise LlmbError(what, why, "Export fewer runs at a time.")
        try:
            os.link(name, file)
        except FileExistsError:
            _refuse_existing(file)
        except OSError:  # a file system without hard links
            _refuse_existing(file)
            os.rename(name, file)
