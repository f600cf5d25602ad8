"""Verification: complete archives pass with any verdicts; changed, added, removed and invented content is detected."""

from __future__ import annotations

import importlib
import json
import random
import re
import shutil
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.evidence.against_preset import PresetCheck
from llmb_tui.evidence.export import Exporter
from llmb_tui.evidence.manifest import ArchiveError
from llmb_tui.evidence.pack import unpack
from llmb_tui.evidence.verify import verify
from llmb_tui.launch.run import Run
from llmb_tui.launch.upstream.procedure import upstream_spec
from llmb_tui.plan.selection import RunOptions, Selection
from llmb_tui.store.paths import UserPaths
from llmb_tui.toml.read import builtin_dir
from tests.evidence.evidence_files import SEAL, forged, members, packed, sealed, tar_of, tar_with, written
from tests.evidence.evidence_runs import GOLDEN, SITE, Laptop, log_text
from tests.kit.runs import NEMOTRON, intended_run, request_for
from tests.launch.launch_cases import ROWS, RUN_ID
from tests.launch.runai.workload_cases import SMALL, intent, request_of

OTHER_VARIANT = Selection("nemotron4-340b", "25.12", "340b", "h100", "fp8", 256)
"""A configuration whose value from another release was measured with another variant of FP8."""
FITTED = replace(OTHER_VARIANT, gpu="b200", dtype="bf16")
_LOG = f"runs/{RUN_ID}/log"
Tar = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Laptop:
    made = Laptop(tmp_path_factory.mktemp("laptop"))
    made.add()
    made.add("slow", log_text(2.4))
    made.add("failed", log_text(steps=9), state="FAILED", accounted=False)
    made.add("nan", log_text().replace("reduced_train_loss: 10.", "reduced_train_loss: nan  "))
    return made


@pytest.fixture(scope="module")
def archive(laptop: Laptop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of three runs."""
    file = tmp_path_factory.mktemp("archive") / "a.tar.zst"
    laptop.export(file, RUN_ID, "slow", "failed")
    return file


@pytest.fixture(scope="module")
def single(laptop: Laptop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of one run."""
    file = tmp_path_factory.mktemp("single") / "a.tar.zst"
    laptop.export(file, RUN_ID)
    return file


def refusal(data: bytes, folder: Path) -> str:
    """Reason for which bytes are refused as an archive."""
    file = folder / "tampered.tar.zst"
    file.write_bytes(data)
    with pytest.raises(ArchiveError) as caught:
        verify(file)
    assert caught.value.exit_code == 1
    return caught.value.why


def differing(file: Path, run_id: str = RUN_ID) -> set[str]:
    """Checks of an archive's run that fail."""
    verification = verify(file)
    return {
        finding.what
        for finding in verification.findings
        if finding.outcome == "differs" and finding.run in (run_id, "")
    }


def test_honest_archives_pass(laptop: Laptop, tmp_path: Path, print_at_end: Callable[[str], None]) -> None:
    sets = [(RUN_ID,), (RUN_ID, "slow", "failed", "nan")]
    passed = Counter[str]()
    for number, runs in enumerate(sets):
        for anonymous in (False, True):
            file = tmp_path / f"{number}{anonymous}.tar.zst"
            laptop.export(file, *runs, anonymous=anonymous)
            assert verify(file).agrees
            passed["anonymous" if anonymous else "with names"] += 1
    print_at_end(f"honest archives that passed: {passed.total()} of {2 * len(sets)}")


def test_findings_of_a_verification(archive: Path) -> None:
    verification = verify(archive)
    outcomes = Counter(finding.outcome for finding in verification.findings)
    assert outcomes["differs"] == 0
    findings = {(finding.run, finding.what): finding for finding in verification.findings}
    assert findings[RUN_ID, "preset against this program's"].words == "nemotron4@25.04 is the same in this program."
    assert findings[RUN_ID, "expected step time"].words == "1.98 s (published), as in this program."
    for what in ("numbers and verdict against log", "settings against preset", "script against settings"):
        assert findings[RUN_ID, what].outcome == "agrees"
    assert findings["failed", "accounting"].outcome == "unknown"
    assert [verification.results[run]["state"] for run in (RUN_ID, "slow", "failed")] == ["done", "done", "failed"]


def test_a_run_of_runai_is_compared_with_its_request(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    run, script = intent(request_of(SMALL))
    laptop.runs.save(replace(run, submission="submitted", job_ids=("w-1",), job_state="COMPLETED", log_read=True))
    laptop.runs.save_script(run.id, script)
    (laptop.runs.folder(run.id) / "log").write_text(log_text())
    laptop.export(tmp_path / "a.tar.zst", run.id, anonymous=True)
    verification = verify(tmp_path / "a.tar.zst")
    findings = {finding.what: finding.outcome for finding in verification.findings}
    assert (findings["settings against preset"], findings["script against settings"]) == ("agrees", "agrees")
    path = forged(
        tmp_path / "a.tar.zst", tmp_path / "f", lambda inside: edit(inside, "script.sh", "nemo:25", "nemo:26")
    )
    assert differing(path, run.id) == {"script against settings"}


def test_a_record_with_the_settings_of_another_procedure_is_found() -> None:
    run, script = intent(request_of(SMALL))
    preset = builtin_dir() / "llama3.1-25.04.toml"
    findings = {
        finding.what: finding for finding in PresetCheck().findings(replace(run, procedure="direct"), script, preset)
    }
    assert findings["script against settings"].outcome == "differs"
    assert "another launch method" in findings["script against settings"].words


def test_runs_started_by_nvidias_tools_pass_and_unknown_facts_are_named(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    request = request_for(NEMOTRON, SITE, "upstream")
    spec = upstream_spec(request, RUN_ID)
    laptop.add(spec=spec, procedure="upstream")
    laptop.runs.save_script(RUN_ID, spec.command)
    accounting = laptop.runs.folder(RUN_ID) / "accounting.txt"
    accounting.write_text(accounting.read_text().replace(f"|{spec.job_name}\n", f"|{spec.job_name}_tp2_pp1\n"))
    laptop.add("adopted", spec=None, procedure="llmb")
    (laptop.runs.folder("adopted") / "script.sh").unlink()
    laptop.export(tmp_path / "a.tar.zst", RUN_ID, "adopted", anonymous=True)
    verification = verify(tmp_path / "a.tar.zst")
    assert verification.agrees
    findings = {(finding.run, finding.what): finding.outcome for finding in verification.findings}
    assert findings[RUN_ID, "script against settings"] == findings[RUN_ID, "accounting against record"] == "agrees"
    for run_id in (RUN_ID, "adopted"):
        assert (
            findings[run_id, "plan against preset"] == findings[run_id, "numbers and verdict against log"] == "agrees"
        )
        assert findings[run_id, "settings against preset"] == "unknown"
    assert findings["adopted", "script against settings"] == findings["adopted", "script"] == "unknown"


def test_another_threshold_is_reported(laptop: Laptop, archive: Path, tmp_path: Path) -> None:
    assert not [finding for finding in verify(archive).findings if finding.what == "threshold"]
    lenient = Exporter(laptop.runs, [SITE], laptop.places.presets, threshold=0.5)
    lenient.export(["slow"], tmp_path / "a.tar.zst")
    verification = verify(tmp_path / "a.tar.zst")
    assert verification.results["slow"]["verdict"]["result"] == "PASS"
    (words,) = [finding.words for finding in verification.findings if finding.what == "threshold"]
    assert words == "Its verdicts pass from a ratio of 0.5 on; the default is 0.95."


# Changed content with correct checksums.


def edit(inside: Path, name: str, old: str, new: str) -> None:
    path = inside / "runs" / RUN_ID / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def overwrite(inside: Path, name: str, text: str) -> None:
    (inside / "runs" / RUN_ID / name).write_text(text)


FORGERIES: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "a faster log": (
        lambda inside: edit(inside, "log", "train_step_timing in s: 2.0", "train_step_timing in s: 1.0"),
        {"numbers and verdict against log"},
    ),
    "another verdict": (
        lambda inside: edit(inside, "result.json", '"PASS"', '"WARN"'),
        {"numbers and verdict against log"},
    ),
    "another number": (
        lambda inside: edit(inside, "result.json", '"step_time_s": 2.02', '"step_time_s": 1.02'),
        {"numbers and verdict against log"},
    ),
    "a result that is none": (
        lambda inside: overwrite(inside, "result.json", "["),
        {"numbers and verdict against log"},
    ),
    "a slower expectation": (
        lambda inside: edit(inside, "run.json", '"step_time_s": 1.98', '"step_time_s": 2.5'),
        {"plan against record", "numbers and verdict against log", "plan against preset", "expected step time"},
    ),
    "an expectation from another release": (
        lambda inside: edit(inside, "run.json", '"method": "published"', '"method": "other_release"'),
        {"plan against record", "numbers and verdict against log", "expected step time"},
    ),
    "a variable of the run": (
        lambda inside: edit(inside, "run.json", '"NVTE_FUSED_ATTN",\n        "1"', '"NVTE_FUSED_ATTN",\n        "0"'),
        {"environment against record", "settings against preset", "script against settings"},
    ),
    "a variable of the script": (
        lambda inside: edit(inside, "script.sh", "NVTE_FUSED_ATTN=1", "NVTE_FUSED_ATTN=0"),
        {"script against settings"},
    ),
    "one more variable in the script": (
        lambda inside: edit(inside, "script.sh", "export NVTE_FUSED_ATTN=1", "export NVTE_FUSED_ATTN=1\nexport X=1"),
        {"script against settings"},
    ),
    "fewer nodes in the script": (
        lambda inside: edit(inside, "script.sh", "--nodes=8", "--nodes=4"),
        {"script against settings"},
    ),
    "another image in the script": (
        lambda inside: edit(inside, "script.sh", "nemo+25.02.01", "nemo+25.04.00"),
        {"script against settings"},
    ),
    "a setting of NeMo's": (
        lambda inside: edit(inside, "run.json", r"batch_size\": 256", r"batch_size\": 128"),
        {"settings against record", "settings against preset"},
    ),
    "another document of the settings": (
        lambda inside: edit(inside, "settings.json", '"nodes": 8', '"nodes": 4'),
        {"settings against record"},
    ),
    "another end in the accounting": (
        lambda inside: edit(inside, "accounting.txt", "|COMPLETED|", "|FAILED|"),
        {"accounting against record"},
    ),
    "a job that was shorter than its steps": (
        lambda inside: edit(inside, "accounting.txt", "|300|", "|30|"),
        {"accounting against record"},
    ),
    "an endless number in the accounting": (
        lambda inside: edit(inside, "accounting.txt", "|300|", f"|{'9' * 5000}|"),
        {"accounting against record"},
    ),
    "a number without end in the result": (
        lambda inside: edit(inside, "result.json", '"step_time_s": 2.02', f'"step_time_s": 1{"0" * 400}'),
        {"numbers and verdict against log"},
    ),
    "a number of 400 digits in the accounting": (
        lambda inside: edit(inside, "accounting.txt", "|300|", f"|1{'0' * 400}|"),
        {"accounting against record"},
    ),
    "pods without end in the accounting": (
        lambda inside: overwrite(inside, "accounting.txt", '[{"id": "4711", "requestedPods": {"number": 1e999}}]'),
        {"accounting against record"},
    ),
    "another job's accounting": (
        lambda inside: edit(inside, "accounting.txt", "4711|", "4712|"),
        {"accounting against record"},
    ),
    "more GPUs than there are": (
        lambda inside: edit(inside, "run.json", '"scale": 64', '"scale": 1000000000000000'),
        {"plan against record", "numbers and verdict against log", "plan against preset"},
    ),
    "a number that is nested without measure": (
        lambda inside: edit(inside, "result.json", '"simulated": false', f'"simulated": {"[" * 900}{"]" * 900}'),
        {"numbers and verdict against log"},
    ),
    "a record that is none": (
        lambda inside: overwrite(inside, "run.json", "{}"),
        {"record"},
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_invented_results_do_not_follow_from_the_data(single: Path, tmp_path: Path, forgery: str) -> None:
    change, names = FORGERIES[forgery]
    assert differing(forged(single, tmp_path, change)) == names


ALTERED: dict[str, tuple[Selection, dict[str, Any], set[str]]] = {
    "nothing": (NEMOTRON, {}, set()),
    "nothing of another variant": (OTHER_VARIANT, {}, set()),
    "no other variant": (OTHER_VARIANT, {"other_variant": ""}, {"plan against preset"}),
    "half the peak": (NEMOTRON, {"peak_tflops": 989.5}, {"plan against preset"}),
    "more operations": (NEMOTRON, {"model_flops_per_sample": 1e15}, {"plan against preset"}),
    "another formula": (NEMOTRON, {"flops_formula": "mine"}, {"plan against preset"}),
    "half the expected MFU": (NEMOTRON, {"mfu_pct": 20.0}, {"plan against preset"}),
    "a wider band": (NEMOTRON, {"high_s": 3.0}, {"expected step time"}),
    "a wider band of another release": (OTHER_VARIANT, {"high_s": 9.0}, {"expected step time"}),
    "a fitted one that has the words of a published one": (FITTED, {"method": "published"}, {"expected step time"}),
    "half the peak of a fitted one": (FITTED, {"peak_tflops": 989.5}, {"plan against preset"}),
    "a fit of another day": (FITTED, {"high_s": 9.0}, set()),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_expectation_that_was_altered_before_the_export_is_found(laptop: Laptop, tmp_path: Path, name: str) -> None:
    """All values derived from it are consistent, so only the preset reveals the change."""
    selection, changes, names = ALTERED[name]
    run = laptop.add("altered", selection=selection)
    assert run.plan.estimate is not None
    plan = replace(run.plan, estimate=replace(run.plan.estimate, **changes))
    laptop.runs.save(replace(run, plan=plan))
    laptop.export(tmp_path / "a.tar.zst", "altered")
    of_another_script = {"script against settings"}  # the laptop's script is for Nemotron4
    assert differing(tmp_path / "a.tar.zst", "altered") - of_another_script == names


def test_missing_evidence_is_found_even_if_the_manifest_conceals_it(laptop: Laptop, tmp_path: Path) -> None:
    laptop.export(tmp_path / "a.tar.zst", RUN_ID, "failed")
    (tmp_path / "inside").mkdir()
    manifest = unpack(tmp_path / "a.tar.zst", tmp_path / "inside")
    kept = tuple(member for member in manifest.members if member.name != f"runs/{RUN_ID}/accounting.txt")
    concealed = written(replace(manifest, members=kept, missing=()), tmp_path / "inside", tmp_path / "b.tar.zst")
    findings = [finding for finding in verify(concealed).findings if finding.what == "accounting"]
    assert [(finding.run, finding.outcome) for finding in findings] == [(RUN_ID, "unknown"), ("failed", "unknown")]
    assert all(finding.words.startswith("Missing. ") for finding in findings)


def slower_preset(inside: Path) -> None:
    path = inside / "presets/nemotron4-25.04.toml"
    text = path.read_text()
    assert "[1.98, 1.98, 1.98," in text
    path.write_text(text.replace("[1.98, 1.98, 1.98,", "[1.98, 1.98, 2.5,"))


def slower_published(inside: Path) -> None:
    edit(inside, "run.json", '"step_time_s": 1.98', '"step_time_s": 2.5')
    slower_preset(inside)


def test_a_preset_that_was_changed_is_found(single: Path, tmp_path: Path) -> None:
    alone = forged(single, tmp_path / "alone", slower_preset)
    assert differing(alone) == {"plan against preset", "expected step time"}
    both = forged(single, tmp_path / "both", slower_published)
    assert "preset against this program's" in differing(both)
    words = forged(single, tmp_path / "words", lambda inside: comment(inside / "presets/nemotron4-25.04.toml"))
    assert differing(words) == set(), "a comment changes nothing"


def test_a_preset_leads_to_no_file_elsewhere(single: Path, tmp_path: Path) -> None:
    def change(inside: Path) -> None:
        path = inside / "presets/nemotron4-25.04.toml"
        path.write_text(path.read_text().replace('"nemo-25.04.txt"', '"/dev/zero"'))

    assert differing(forged(single, tmp_path, change)) == {"preset"}


def comment(path: Path) -> None:
    path.write_text(path.read_text() + "\n# told\n")


# Damage to an archive.


def flip_bit(data: bytes, random_: random.Random) -> bytes:
    at, bit = random_.randrange(len(data)), 1 << random_.randrange(8)
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


def cut_short(data: bytes, random_: random.Random) -> bytes:
    return data[: random_.randrange(len(data))]


def append_bytes(data: bytes, random_: random.Random) -> bytes:
    return data + random_.randbytes(random_.randrange(1, 100))


def append_frame(data: bytes, random_: random.Random) -> bytes:
    frame = data[:-SEAL]
    return sealed(frame + packed(random_.randbytes(20))[:-SEAL])


def repacked(change: Callable[[Tar, random.Random], Tar]) -> Callable[[bytes, random.Random], bytes]:
    return lambda data, random_: packed(tar_with(change(members(tar_of(data)), random_)))


def add_member(found: Tar, random_: random.Random) -> Tar:
    info = tarfile.TarInfo(random_.choice(["runs/other/log", f"runs/{RUN_ID}/log.1", "../../x", "/etc/x", "x"]))
    info.size, info.mode = 3, 0o600
    found.insert(random_.randrange(1, len(found) + 1), (info, b"new"))
    return found


def remove_member(found: Tar, random_: random.Random) -> Tar:
    del found[random_.randrange(len(found))]
    return found


def double_member(found: Tar, random_: random.Random) -> Tar:
    found.insert(random_.randrange(1, len(found) + 1), random_.choice(found))
    return found


def rename_member(found: Tar, random_: random.Random) -> Tar:
    info, _ = random_.choice(found)
    info.name = f"{info.name}x"
    return found


def swap_members(found: Tar, random_: random.Random) -> Tar:
    first, second = random_.sample(range(len(found)), 2)
    found[first], found[second] = found[second], found[first]
    return found


def change_bit_of_member(found: Tar, random_: random.Random) -> Tar:
    at = random_.choice([index for index, (_, data) in enumerate(found) if data])
    info, data = found[at]
    found[at] = info, flip_bit(data, random_)
    return found


def change_head(found: Tar, random_: random.Random) -> Tar:
    info, _ = random_.choice(found)
    name, value = random_.choice([("mtime", 7), ("mode", 0o644), ("uid", 7), ("uname", "x"), ("gname", "x")])
    setattr(info, name, value)
    return found


def replaced_by_a_link(found: Tar, random_: random.Random) -> Tar:
    at = random_.randrange(1, len(found))
    info, _ = found[at]
    info.type, info.linkname = random_.choice([tarfile.SYMTYPE, tarfile.LNKTYPE]), "/etc/passwd"
    info.size = 0
    found[at] = info, b""
    return found


KINDS: dict[str, tuple[int, Callable[[bytes, random.Random], bytes]]] = {
    "a bit of the file": (30, flip_bit),
    "cut short": (8, cut_short),
    "bytes appended": (5, append_bytes),
    "a second frame": (5, append_frame),
    "a bit of a member": (10, repacked(change_bit_of_member)),
    "a member added": (5, repacked(add_member)),
    "a member removed": (5, repacked(remove_member)),
    "a member doubled": (5, repacked(double_member)),
    "a member renamed": (5, repacked(rename_member)),
    "members swapped": (5, repacked(swap_members)),
    "a head changed": (5, repacked(change_head)),
    "a link": (5, repacked(replaced_by_a_link)),
}


def test_every_tampered_archive_is_found(archive: Path, tmp_path: Path, print_at_end: Callable[[str], None]) -> None:
    data = archive.read_bytes()
    assert packed(tar_of(data))[:4] == data[:4]
    detected = Counter[str]()
    for kind, (times, tamper) in KINDS.items():
        for seed in range(times):
            tampered = tamper(data, random.Random(f"{kind} {seed}"))
            assert tampered != data
            assert refusal(tampered, tmp_path), (kind, seed)
            detected[kind] += 1
    print_at_end(
        f"tampered archives that were found: {detected.total()} of {sum(times for times, _ in KINDS.values())}"
    )
    print_at_end(", ".join(f"{kind} {count}" for kind, count in detected.items()))


def test_an_archive_packed_by_the_test_is_accepted(archive: Path, tmp_path: Path) -> None:
    """The refusals above are caused by the damage, not by the way in which the tests pack."""
    (tmp_path / "again.tar.zst").write_bytes(packed(tar_with(members(tar_of(archive.read_bytes())))))
    assert verify(tmp_path / "again.tar.zst").agrees


def archive_with_manifest_size(size: int) -> bytes:
    """Archive whose first header announces a manifest of this size."""
    info = tarfile.TarInfo("manifest.json")
    info.size, info.mode = size, 0o600
    return packed(info.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096)


def hostile(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"x") -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(data), "/etc/passwd" if kind != tarfile.REGTYPE else ""
    yield packed(tar_with([(info, data)]))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut short"),
        (b"hello", "cut short"),
        (b"PK\x03\x04" + b"x" * 200, "another file format"),
        (packed(b"\0" * 2048), "not a tar file"),
        (packed(b"text " * 1000), "not a tar file"),
        (next(hostile("../../etc/cron.d/x")), "first member"),
        (next(hostile("manifest.json", tarfile.SYMTYPE, b"")), "first member"),
        (next(hostile("manifest.json", data=b"{}")), "first member"),
        (packed(tar_with([])), "not a tar file"),
        (archive_with_manifest_size(-5), "first member"),
        (archive_with_manifest_size(1 << 40), "first member"),
    ],
    ids=range(11),
)
def test_a_file_that_is_not_an_archive_is_rejected_with_an_explanation(tmp_path: Path, data: bytes, why: str) -> None:
    assert why in refusal(data, tmp_path)


def test_a_frame_without_checksum_is_refused(archive: Path, tmp_path: Path) -> None:
    assert "no checksum" in refusal(packed(tar_of(archive.read_bytes()), checksum=False), tmp_path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"schema": 2}, "format 2"),
        ({"kind": "something else"}, "not a manifest"),
        ({"runs": ["../../etc"]}, "a run that it does not list"),
        ({"members": [{"name": "../../x", "size": 1, "sha256": "0"}]}, "outside the folder"),
        ({"members": [{"name": "/etc/x", "size": 1, "sha256": "0"}]}, "outside the folder"),
        ({"members": [{"name": "runs/x/.bashrc", "size": 1, "sha256": "0"}]}, "no archive of llmb-tui"),
        ({"members": [{"name": "presets/constraints", "size": 1, "sha256": "0"}]}, "no archive of llmb-tui"),
        ({"members": [{"name": f"runs/{RUN_ID}/log", "size": -5, "sha256": "0"}]}, "an invalid size"),
        ({"members": [{"name": _LOG, "size": 9 << 40, "sha256": "0"}]}, "lacks a file"),
        ({"members": [{"name": f"runs/{RUN_ID}/run.json", "size": 1 << 30, "sha256": "0"}]}, "too large"),
        ({"runs": [RUN_ID, "slow", "failed", "slow"]}, "listed twice"),
        ({"suites": ["../../../etc/x"]}, "lacks a file"),
        ({"presets": [{"recipe": "nemotron4@25.04", "name": "../../etc/passwd", "sha256": "0"}]}, "lacks a file"),
        ({"presets": [{"recipe": "nemotron4@25.04", "name": "/etc/passwd", "sha256": "0"}]}, "lacks a file"),
        ({"members": [{"name": _LOG, "size": 1, "sha256": "0"}] * 2}, "twice"),
        ({"members": [{"name": "presets/x", "size": 1, "sha256": "0"}] * 20_001}, "20,001 members"),
        ({"threshold": "high"}, "cannot be read"),
        ({"seal": "0" * 64}, "own checksum is wrong"),
        ({"more": 1}, "own checksum is wrong"),
    ],
    ids=range(19),
)
def test_a_foreign_manifest_is_rejected(archive: Path, tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    (tmp_path / "inside").mkdir()
    manifest = unpack(archive, tmp_path / "inside")
    document = json.loads(manifest.text) | {"seal": ""} | changes
    if "seal" not in changes and "more" not in changes:
        import hashlib

        document["seal"] = hashlib.sha256(json.dumps(document, indent=1).encode() + b"\n").hexdigest()
    text = json.dumps(document, indent=1).encode() + b"\n"
    info = tarfile.TarInfo("manifest.json")
    info.size, info.mode = len(text), 0o600
    assert why in refusal(packed(tar_with([(info, text)])), tmp_path)


def test_a_bomb_is_not_unpacked(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused with a manifest that states the true size, and with content that exceeds the manifest's size."""
    inside = tmp_path / "inside"
    inside.mkdir()
    manifest = unpack(archive, inside)
    (inside / _LOG).write_bytes(b"\0" * (40 << 20))
    bomb = written(manifest, inside, tmp_path / "bomb.tar.zst")
    monkeypatch.setattr("llmb_tui.evidence.pack.ALWAYS_FINE", 8 << 20)
    assert "logs cannot explain" in refusal(bomb.read_bytes(), tmp_path)
    tar = tar_of(archive.read_bytes())
    longer, unpacked = packed(tar + b"\0" * (40 << 20)), list[int]()
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    decompressor = zstd.ZstdDecompressor

    class Counted:
        def __init__(self) -> None:
            self.real = decompressor()

        def decompress(self, data: bytes, max_length: int = -1) -> bytes:
            piece: bytes = self.real.decompress(data, max_length)
            unpacked.append(len(piece))
            return piece

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    monkeypatch.setattr(zstd, "ZstdDecompressor", Counted)
    assert refusal(longer, tmp_path) == "Something follows the last member."
    assert sum(unpacked) <= len(tar) + 1


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_a_missing_file_is_named(archive: Path, tmp_path: Path, kind: bytes) -> None:
    contents = members(tar_of(archive.read_bytes()))
    at = next(index for index, (info, _) in enumerate(contents) if info.name == _LOG)
    info = contents[at][0]
    info.type, info.size, info.linkname = kind, 0, "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    contents[at] = info, b""
    why = refusal(packed(tar_with(contents)), tmp_path)
    assert re.search(rf"{_LOG}/? is a (symbolic link|hard link|device|pipe|directory)", why), why


def test_added_repeated_and_removed_members_are_named(archive: Path, tmp_path: Path) -> None:
    whole = members(tar_of(archive.read_bytes()))
    extra = tarfile.TarInfo("runs/x/log")
    extra.mode = 0o600
    assert "does not list" in refusal(packed(tar_with([*whole, (extra, b"")])), tmp_path)
    assert " twice." in refusal(packed(tar_with([*whole[:3], whole[2], *whole[3:]])), tmp_path)
    assert "is missing" in refusal(packed(tar_with(whole[:-1])), tmp_path)
    assert "added, removed or renamed" in refusal(packed(tar_with([*whole[:3], *whole[4:]])), tmp_path)


def test_pipes_folders_and_missing_files_are_rejected(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for name, why in (("pipe", "not a regular file"), (".", ""), ("nothing", "No such file")):
        with pytest.raises(LlmbError) as caught:
            verify(tmp_path / name)
        assert caught.value.exit_code == 1
        assert why in caught.value.why


def test_verify_leaves_no_files_and_reads_no_user_paths(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(UserPaths, "of_user", None)
    assert verify(archive).agrees
    assert list(tmp_path.iterdir()) == []


def golden_run(row: tuple[str, str, str, str, int], profile: SlurmProfile = SITE, **more: Any) -> Run:
    """The run for which a golden script was rendered."""
    recipe, size, gpu, dtype, scale = row
    workload, release = recipe.split("@")
    selection = Selection(workload, release, size, gpu, dtype, scale, **more)
    return intended_run(request_for(selection, profile), RUN_ID)


GOLDEN_RUNS = {
    **{name: golden_run(row) for name, row in ROWS.items()},
    **{
        f"{name}-nsys": golden_run(ROWS[name], options=RunOptions(profile=True, profile_start=20, profile_stop=25))
        for name in ("nemotron4-340b-25.12", "llama3.1-24.11")
    },
    "pinned": golden_run(ROWS["nemotron4-25.04"], replace(SITE, cpus_per_task=14, vboost=True, memory="1900G")),
    "options": golden_run(
        ROWS["llama3.1-25.04"], options=RunOptions(hub_tokenizer=True, load_checkpoint="/lustre/me/checkpoint")
    ),
}


@pytest.fixture(scope="module")
def preset_check() -> PresetCheck:
    return PresetCheck()


@pytest.mark.parametrize("name", GOLDEN_RUNS)
def test_genuine_scripts_of_every_recipe_agree_with_their_presets(preset_check: PresetCheck, name: str) -> None:
    run, script = GOLDEN_RUNS[name], (GOLDEN / f"{name}.sh").read_text()
    selection = run.plan.selection
    preset = builtin_dir() / f"{selection.workload}-{selection.release}.toml"
    findings = {
        finding.what: (finding.outcome, finding.words) for finding in preset_check.findings(run, script, preset)
    }
    assert {outcome for outcome, _ in findings.values()} == {"agrees"}, findings
    text = "nemotron4-25.04.sh" if name != "nemotron4-25.04" else "llama3.1-25.04.sh"
    others = preset_check.findings(run, (GOLDEN / text).read_text(), preset)
    wrong = {text.what for text in others if text.outcome == "differs"}
    assert wrong == {"script against settings"}


@pytest.mark.parametrize("planned_with", ["versions", "no versions"])
@pytest.mark.parametrize("preset_has", ["versions", "no versions"])
def test_an_archive_agrees_whether_or_not_it_has_the_versions_of_the_container(
    preset_check: PresetCheck, tmp_path: Path, planned_with: str, preset_has: str
) -> None:
    run, script = GOLDEN_RUNS["nemotron4-25.04"], (GOLDEN / "nemotron4-25.04.sh").read_text()
    assert run.plan.container_versions
    if planned_with == "no versions":
        run = replace(run, plan=replace(run.plan, container_versions=()))
    text = (builtin_dir() / "nemotron4-25.04.toml").read_text()
    table = re.search(r"(?m)^\[containers\..*\n(?:.+\n)+\n", text)
    assert table
    preset = tmp_path / "nemotron4-25.04.toml"
    preset.write_text(text if preset_has == "versions" else text.replace(table[0], ""))
    shutil.copytree(builtin_dir() / "constraints", tmp_path / "constraints")
    assert {finding.outcome for finding in preset_check.findings(run, script, preset)} == {"agrees"}
