"""Contents of an archive, contents that are never included, and reproducible bytes."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster_files.prune import local_logs, remove_log
from llmb_tui.errors import LlmbError
from llmb_tui.evidence.export import Exporter
from llmb_tui.evidence.secret_search import SecretSearch, known_secrets
from llmb_tui.evidence.verify import verify
from llmb_tui.store import documents, secret_store
from llmb_tui.suites.suite import Suite, SuiteRow
from tests.evidence.evidence_files import members, tar_of
from tests.evidence.evidence_runs import HOST, NODE, SITE, USER, Laptop, log_text
from tests.kit import verbs
from tests.kit.runs import NEMOTRON
from tests.launch.launch_cases import RUN_ID

TOKEN = "hf_" + "Ab1" * 11


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


def contents(file: Path) -> dict[str, bytes]:
    return {info.name: data for info, data in members(tar_of(file.read_bytes()))}


def test_all_evidence_of_a_run_is_in_it_and_nothing_else(laptop: Laptop, tmp_path: Path) -> None:
    run = laptop.add()
    (laptop.runs.folder(run.id) / "note.json").write_text("{}")
    (laptop.runs.folder(run.id) / "profile.nsys-rep").write_text("large")
    manifest = laptop.export(tmp_path / "a.tar.zst")
    found = contents(tmp_path / "a.tar.zst")
    of_run = "accounting.txt environment.json log plan.json result.json run.json script.sh settings.json".split()
    assert list(found) == [
        "manifest.json",
        "presets/constraints/nemo-25.04.txt",
        "presets/nemotron4-25.04.toml",
        *(f"runs/{RUN_ID}/{name}" for name in of_run),
    ]
    folder = laptop.runs.folder(RUN_ID)
    for name in ("log", "script.sh", "accounting.txt", "run.json"):
        assert found[f"runs/{RUN_ID}/{name}"] == (folder / name).read_bytes()
    assert found["presets/nemotron4-25.04.toml"] == Path("presets/nemotron4-25.04.toml").read_bytes()
    result = json.loads(found[f"runs/{RUN_ID}/result.json"])
    assert (result["step_time_s"], result["verdict"]["result"], result["steady"]["count"]) == (2.02, "PASS", 45)
    environment = json.loads(found[f"runs/{RUN_ID}/environment.json"])
    assert environment["env"]["NVTE_FUSED_ATTN"] == "1"
    assert (manifest.missing, manifest.anonymous, manifest.threshold) == ((), False, 0.95)
    assert stat.S_IMODE((tmp_path / "a.tar.zst").stat().st_mode) == 0o600


def test_everybodys_tools_read_it(laptop: Laptop, tmp_path: Path) -> None:
    laptop.add()
    laptop.export(tmp_path / "a.tar.zst")
    (tmp_path / "a.tar").write_bytes(tar_of((tmp_path / "a.tar.zst").read_bytes()))
    with tarfile.open(tmp_path / "a.tar") as file:
        assert all(info.isreg() and (info.mtime, info.uid, info.uname) == (0, 0, "") for info in file)


def test_the_same_runs_are_the_same_bytes_on_another_day(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.add()
    laptop.add("second", log_text(2.4), state="COMPLETED")
    laptop.export(tmp_path / "a.tar.zst", RUN_ID, "second")
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    laptop.export(tmp_path / "b.tar.zst", RUN_ID, "second")
    assert (tmp_path / "a.tar.zst").read_bytes() == (tmp_path / "b.tar.zst").read_bytes()


def test_missing_evidence_is_named(laptop: Laptop, tmp_path: Path) -> None:
    laptop.add(accounted=False, log_read=False, log=log_text(steps=20), state="FAILED")
    laptop.add("refused", job_ids=(), job=None, job_state=None, submission="refused", log="", accounted=False)
    (laptop.runs.folder("refused") / "log").unlink()
    laptop.add("pruned")
    (log,) = [one for one in local_logs(laptop.runs, 2e9, {}).removable if one.run.id == "pruned"]
    remove_log(laptop.runs, log)
    manifest = laptop.export(tmp_path / "a.tar.zst", RUN_ID, "refused", "pruned")
    assert [(one.run, one.what) for one in manifest.missing] == [
        (RUN_ID, "end of the log"),
        (RUN_ID, "accounting"),
        ("refused", "log"),
        ("refused", "accounting"),
        ("pruned", "log"),
    ]
    verification = verify(tmp_path / "a.tar.zst")
    assert verification.agrees
    findings = {
        finding.run: finding for finding in verification.findings if finding.what == "numbers and verdict against log"
    }
    assert (findings[RUN_ID].outcome, findings["pruned"].outcome) == ("agrees", "unknown")
    assert verification.results["pruned"]["step_time_s"] == 2.02


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"job_state": "RUNNING"}, "is active"),
        ({"submission": "unknown", "job_ids": (), "job": None}, "is unknown"),
        ({"submission": "intended", "job_ids": (), "job": None}, "is not submitted"),
    ],
)
def test_a_run_that_may_still_change_is_refused(
    laptop: Laptop, tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    laptop.add()
    laptop.runs.save(replace(laptop.runs.load(RUN_ID), **changes))  # type: ignore[arg-type]
    with pytest.raises(LlmbError, match=why) as caught:
        laptop.export(tmp_path / "a.tar.zst")
    assert caught.value.exit_code == 1
    assert not (tmp_path / "a.tar.zst").exists()


def test_an_existing_file_is_not_overwritten_and_no_partial_file_stays(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.add()
    target = tmp_path / "out" / "a.tar.zst"
    with pytest.raises(LlmbError, match="out does not exist"):
        laptop.export(target)
    target.parent.mkdir()
    target.symlink_to("nowhere")
    with pytest.raises(LlmbError, match="not overwritten"):
        laptop.export(target)
    target.unlink()
    monkeypatch.setattr("os.link", taken(target))
    with pytest.raises(LlmbError, match="not overwritten"):
        laptop.export(target)
    assert target.read_text() == "somebody else's"
    target.unlink()
    monkeypatch.setattr("llmb_tui.evidence.export.unpack", lambda *_: None)
    with pytest.raises(LlmbError, match="read back"):
        laptop.export(target)
    assert list(target.parent.iterdir()) == []


def test_a_log_whose_archive_could_not_be_verified_is_named(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.evidence.pack.ALWAYS_FINE", 1 << 20)
    monkeypatch.setattr("llmb_tui.evidence.pack.RATIO", 2)
    laptop.add(log=log_text() + "the same warning\n" * 100_000)
    with pytest.raises(LlmbError, match="could not be verified") as caught:
        laptop.export(tmp_path / "a.tar.zst")
    assert f"runs/{RUN_ID}/log has 1.7" in caught.value.why
    assert "more runs" in caught.value.fix
    assert not (tmp_path / "a.tar.zst").exists()


def test_a_full_disk_is_reported_for_the_written_file(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = laptop.add()
    private = tmp_path / "private" / "runs" / run.id
    private.mkdir(parents=True)
    (private / "log").symlink_to("/dev/full")
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: str(tmp_path / "private"))
    with pytest.raises(LlmbError) as caught:
        laptop.export(tmp_path / "a.tar.zst")
    assert caught.value.what == f"Could not write {private / 'log'}."
    assert (caught.value.why, caught.value.fix) == ("No space left on device.", "Free some space.")
    assert not (tmp_path / "a.tar.zst").exists()


def test_an_unreadable_log_is_reported_for_that_log(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = laptop.runs.folder(laptop.add().id) / "log"
    opened = Path.open

    def refused(path: Path, *given: Any, **named: Any) -> Any:
        if path == log:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path, *given, **named)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(LlmbError, match=f"^Could not read {log}"):
        laptop.export(tmp_path / "a.tar.zst")


def taken(target: Path) -> Callable[[str, Path], None]:
    """Another program creates the file at the last moment."""

    def link(_: str, to: Path) -> None:
        target.write_text("somebody else's")
        raise FileExistsError(str(to))

    return link


@pytest.mark.parametrize(
    ("secret", "kind"),
    [
        (f"token: {TOKEN}", "Hugging Face"),
        ("key nvapi-" + "x1Y_-" * 12, "NVIDIA API key"),
        (
            "ZzNrcHFhYmNkZWZnaGlqa2xtbm9wcXJzdHU6MDEyMzQ1NjctODlhYi1jZGVmLTAxMjMtNDU2Nzg5YWJjZGVm",
            "NGC API key",
        ),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "JSON web token"),
        ("Authorization: Bearer 0123456789abcdef0123456789", "bearer"),
        ("AKIAIOSFODNN7EXAMPLE", "AWS"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "a secret"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
        ("machine nvcr.io login $oauthtoken password c2VjcmV0c2VjcmV0", "netrc"),
        ('{"clientSecret": "Q7fh2kLm9Zx1Wv0p"}', "a secret"),
        ("APP_SECRET=Q7fh2kLm9Zx1Wv0p", "variable"),
        ("WANDB_API_KEY=0123456789abcdef0123", "variable"),
        ("export DEPLOY_KEY=abcd1234efgh5678", "variable"),
        ("DB_PASSWORD=p@ssw0rd!2345", "variable"),
        ("DB_PASSWORD=Tr0ub4dor&3xyz", "variable"),
        ("MY_SECRET=ab#cdefghijkl", "variable"),
        ('MY_SECRET="cut off before its', "variable"),
        ('declare -x DB_PASSWORD="correct horse battery"', "variable"),
        ("DB_PASSWORD='pa$$w0rd99xyz'", "variable"),
        ("https://alice:hunter2hunter2@proxy:3128", "address"),
        ("ghp_" + "a1B2" * 9, "GitHub"),
    ],
)
def test_texts_with_the_form_of_a_secret_are_found(tmp_path: Path, secret: str, kind: str) -> None:
    (tmp_path / "log").write_text(f"{log_text(steps=3)}\n{secret}\n{log_text(steps=3)}")
    line, text = SecretSearch({}).find(tmp_path / "log") or (0, "")
    assert (line, kind in text) == (11, True), text


@pytest.mark.parametrize(
    "text",
    [
        "def login(api_key: Optional[str] = None, password: Union[str, bytes] = None):",
        "HF_TOKEN=$(cat /run/token-of-the-job) WANDB_API_KEY=${WANDB_API_KEY:-none}",
        'HF_TOKEN="$(cat "$HOME/.llmb-tui/hugging-face-token")" EOS_TOKEN="<|end_of_text|>"',
        "PASSWORD=xxxxxxxxxxxx APP_SECRET=[hidden] MY_SECRET=None, SOME_KEY=/a/file/of/keys",
        "c10::DispatchKey::CPU_KEY::something_longer API_KEY={value_of_it}",
    ],
)
def test_a_harmless_value_of_a_secrets_variable_stops_no_export(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(f"{text}\n")
    assert SecretSearch({}).find(tmp_path / "log") is None


def test_a_secret_stops_the_export_and_is_not_repeated(laptop: Laptop, tmp_path: Path) -> None:
    laptop.add(log=f"one\ntwo\n+ export X={TOKEN}\n{log_text()}")
    for anonymous in (False, True):
        with pytest.raises(LlmbError) as caught:
            laptop.export(tmp_path / "a.tar.zst", anonymous=anonymous)
        text = str(caught.value)
        assert f"runs/{RUN_ID}/log, line 3, contains a Hugging Face token" in text
        assert TOKEN[3:] not in text
        assert caught.value.exit_code == 1
        assert not (tmp_path / "a.tar.zst").exists()


@pytest.mark.parametrize("name", ["script.sh", "accounting.txt", "network.txt", "beside.json", "run.json"])
def test_every_file_is_searched(laptop: Laptop, tmp_path: Path, name: str) -> None:
    run = laptop.add()
    path = laptop.runs.folder(run.id) / name
    if name == "run.json":
        laptop.runs.save(replace(run, note=TOKEN))
    elif name == "beside.json":
        path.write_text(json.dumps({"reason": "r", "fix": "", "line": TOKEN, "weight": 1}))
    else:
        path.write_text((path.read_text() if path.exists() else "") + TOKEN)
    with pytest.raises(LlmbError, match=name):
        laptop.export(tmp_path / "a.tar.zst")


def test_secrets_of_the_keyring_are_found_whatever_their_form(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"ngc": "plain words of mine", "hugging-face": None}
    monkeypatch.setattr(secret_store, "read", kept.get)
    laptop.add(log=log_text() + "told: plain words of mine\n")
    with pytest.raises(LlmbError, match="the NGC API key of the keyring") as caught:
        laptop.export(tmp_path / "a.tar.zst")
    assert "plain words" not in str(caught.value)


def test_a_keyring_that_stays_locked_stops_the_export(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(_: str) -> None:
        raise secret_store.SecretStoreError("", "The keyring is locked, and was not unlocked.")

    laptop.add()
    monkeypatch.setattr(secret_store, "read", locked)
    with pytest.raises(LlmbError, match="keyring") as caught:
        laptop.export(tmp_path / "a.tar.zst")
    assert "Unlock" in caught.value.fix


def test_a_secret_in_the_environment_of_this_program_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_SECRET", " short ")
    assert known_secrets([])["the value of APP_SECRET"] == "short"


def test_secrets_are_found_across_the_pieces_in_which_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    search = SecretSearch({"the key": "s3cr3t value"})
    for before in ((1 << 20) - 5, (1 << 20) - 12, (1 << 20) + 3, 10):
        path.write_bytes(b"a line of text\n" * 3 + b"." * (before - 45) + b"s3cr3t value")
        assert search.find(path) == (4, "the key")
    path.write_bytes(b"x\n" * 600_000 + TOKEN.encode())
    assert search.find(path) == (600_001, "a Hugging Face token")


def test_genuine_scripts_and_logs_contain_nothing_that_resembles_a_secret() -> None:
    search = SecretSearch({})
    found = [
        (path.name, search.find(path))
        for folder in ("tests/launch/golden", "tests/launch/golden_upstream", "tests/watch/golden", "presets")
        for path in Path(folder).rglob("*")
        if path.is_file()
    ]
    assert len(found) > 30
    assert [one for one in found if one[1]] == []


def test_names_addresses_and_homes_are_replaced_in_all_files_alike(laptop: Laptop, tmp_path: Path) -> None:
    laptop.add()
    laptop.add("second")
    file = tmp_path / "a.tar.zst"
    manifest = laptop.export(file, RUN_ID, "second", anonymous=True)
    assert manifest.anonymous
    files = contents(file)
    everything = b"\n".join(files.values()).decode()
    for name in (USER, NODE, HOST, "login7", "hpc.example", "10.31.4.17", "fe80::", '"eos"', "eos-slurm"):
        assert name not in everything, name
    log = files[f"runs/{RUN_ID}/log"].decode()
    assert "HOSTNAME=host-1\nUSER=user-1\nHOME=/home/user-1\nhost-1:4242" in log
    assert "told to mail-1" in log
    assert "9.1.0.70" in log, "a version is not an address"
    assert files["runs/second/log"] == files[f"runs/{RUN_ID}/log"]
    accounting = files[f"runs/{RUN_ID}/accounting.txt"].decode()
    assert "|user-1|" in accounting
    assert "host-1,host-2,host-3" in accounting
    assert json.loads(files[f"runs/{RUN_ID}/run.json"])["cluster"] == "cluster-1"
    verification = verify(file)
    assert verification.agrees
    assert verification.results[RUN_ID]["step_time_s"] == 2.02
    assert any(finding.what == "anonymous" for finding in verification.findings)


@pytest.mark.parametrize(("transport", "outcome"), [("IB/0/GDRDMA", "ok"), ("Socket/0", "failed")])
def test_an_anonymous_archive_has_the_network_lines_of_its_run_and_checks_them(
    laptop: Laptop, tmp_path: Path, transport: str, outcome: str
) -> None:
    run, file = laptop.add(), tmp_path / "a.tar.zst"
    lines = f"== rhea0301\nrhea0301:12:90 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/{transport}\n"
    (laptop.runs.folder(run.id) / "network.txt").write_text(lines)
    laptop.export(file, anonymous=True)
    files = contents(file)
    assert not [name for name, data in files.items() if b"rhea0301" in data]
    text = files[f"runs/{RUN_ID}/network.txt"].decode()
    alias = text.splitlines()[0].removeprefix("== ")
    assert text == lines.replace("rhea0301", alias)
    verification = verify(file)
    assert verification.agrees
    checks = {check["id"]: check["outcome"] for check in verification.results[RUN_ID]["validity"]}
    assert checks["transport"] == outcome


def test_nodes_that_a_run_was_kept_from_are_replaced_too(laptop: Laptop, tmp_path: Path) -> None:
    laptop.add(profile=replace(SITE, exclude="rhea[0203,0207]"))
    laptop.export(tmp_path / "a.tar.zst", anonymous=True)
    assert [name for name, data in contents(tmp_path / "a.tar.zst").items() if b"rhea" in data] == []


def test_the_numbers_are_json_that_everybody_reads(laptop: Laptop, tmp_path: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    laptop.add(log=re.sub(r"reduced_train_loss: [\d.]+", "reduced_train_loss: nan", log_text()))
    laptop.export(tmp_path / "a.tar.zst")
    read = [name for name in contents(tmp_path / "a.tar.zst") if name.endswith("/result.json")]
    for name in read:
        loss = json.loads(contents(tmp_path / "a.tar.zst")[name], parse_constant=refuse)["loss"]
        assert loss["last"] is None
        assert loss["not_finite"] > 0
    assert read


def test_names_are_replaced_in_a_custom_preset_too(laptop: Laptop, tmp_path: Path) -> None:
    published = Path("presets/nemotron4-25.04.toml").read_text()
    own = published.replace('release = "25.04"', 'release = "25.99"', 1)
    words = f"# by {USER}@corp.example, from /home/{USER} on {HOST}\n"
    laptop.places.presets.mkdir(parents=True)
    (laptop.places.presets / "mine.toml").write_text(words + own)
    constraints = laptop.places.presets / "constraints" / "nemo-25.04.txt"
    constraints.parent.mkdir()
    constraints.write_text(f"# of {USER}\nnumpy==1.26.4\n")
    run = laptop.add()
    plan = replace(run.plan, selection=replace(run.plan.selection, release="25.99"))
    laptop.runs.save(replace(run, plan=plan))
    laptop.export(tmp_path / "a.tar.zst")
    assert contents(tmp_path / "a.tar.zst")["presets/nemotron4-25.99.toml"].decode() == words + own
    laptop.export(tmp_path / "b.tar.zst", anonymous=True)
    files = contents(tmp_path / "b.tar.zst")
    assert files["presets/nemotron4-25.99.toml"].decode() == "# by mail-2, from /home/user-1 on host-9\n" + own
    assert files["presets/constraints/nemo-25.04.txt"] == b"# of user-1\nnumpy==1.26.4\n"
    findings = {finding.what: finding.outcome for finding in verify(tmp_path / "b.tar.zst").findings}
    assert (findings["preset's hash"], findings["settings against preset"]) == ("agrees", "agrees")


def test_accounting_that_is_not_utf8_is_included_unchanged(laptop: Laptop, tmp_path: Path) -> None:
    run = laptop.add()
    path = laptop.runs.folder(run.id) / "accounting.txt"
    text = path.read_bytes().replace(f"/home/{USER}".encode(), b"/data/caf\xe9").replace(b"alicem", b"jos\xe9")
    path.write_bytes(text)
    laptop.export(tmp_path / "a.tar.zst", anonymous=True)
    accounting = contents(tmp_path / "a.tar.zst")[f"runs/{RUN_ID}/accounting.txt"]
    assert b"|/data/caf\xe9|" in accounting
    assert b"jos" not in accounting
    assert verify(tmp_path / "a.tar.zst").agrees


def test_a_name_that_is_a_word_of_the_log_stops_the_anonymous_export(laptop: Laptop, tmp_path: Path) -> None:
    laptop.add(log=log_text().replace(USER, "iteration"))
    with pytest.raises(LlmbError, match="would change its content"):
        laptop.export(tmp_path / "a.tar.zst", anonymous=True)
    assert laptop.export(tmp_path / "a.tar.zst").runs == (RUN_ID,)


@pytest.mark.parametrize(
    ("profile", "where"),
    [
        (replace(SITE, host="h100"), "plan against preset: .*gpu 'host-"),
        (replace(SITE, user="nemo"), "plan against preset: .*container"),
        (replace(SITE, host="batch"), "validity"),
        (replace(SITE, host="fp8"), "plan against preset"),
        (replace(SITE, user="null"), "JSON"),
        (replace(SITE, user="nemotron4"), "preset: The archive has no preset of user-"),
    ],
    ids=lambda value: f"{value.user}@{value.host}" if isinstance(value, SlurmProfile) else None,
)
def test_a_name_that_is_a_word_of_the_preset_stops_the_anonymous_export(
    laptop: Laptop, tmp_path: Path, profile: SlurmProfile, where: str
) -> None:
    """Without the refusal, `verify` would reject an honest archive."""
    laptop.add(profile=profile)
    exporter = Exporter(laptop.runs, [profile], laptop.places.presets, threshold=0.95)
    with pytest.raises(LlmbError, match="would change its content") as caught:
        exporter.export([RUN_ID], tmp_path / "a.tar.zst", anonymous=True)
    assert re.search(where, caught.value.why), caught.value.why
    assert caught.value.exit_code == 1
    assert not (tmp_path / "a.tar.zst").exists()
    exporter.export([RUN_ID], tmp_path / "a.tar.zst")


def test_a_name_that_is_a_word_of_the_suites_document_stops_the_anonymous_export(
    laptop: Laptop, tmp_path: Path
) -> None:
    profile = replace(SITE, user="repeat")
    laptop.add(profile=profile)
    suite = Suite("noise", "repeat", "eos", (SuiteRow("a row", NEMOTRON, "direct", RUN_ID),), digest="d", id="s1")
    exporter = Exporter(laptop.runs, [profile], laptop.places.presets, threshold=0.95)
    with pytest.raises(LlmbError, match="Suite s1 was not exported"):
        exporter.export([RUN_ID], tmp_path / "a.tar.zst", [suite], anonymous=True)


class Verbs:
    """The command line of one user."""

    def __init__(self, home: Path) -> None:
        self._variables = verbs.environment(home)

    def __call__(self, *words: str) -> SimpleNamespace:
        result = verbs.run(words, self._variables)
        document = json.loads(result.stdout.splitlines()[-1]) if "--json" in words else None
        return SimpleNamespace(code=result.returncode, out=result.stdout, err=result.stderr, json=document)


def test_the_verbs(laptop: Laptop, tmp_path: Path) -> None:
    laptop.add()
    laptop.add("slow", log_text(2.4))
    laptop.add("failed", log_text(steps=9), state="FAILED", accounted=False)
    run, file = Verbs(tmp_path), str(tmp_path / "a.tar.zst")
    result = run("export", RUN_ID, "slow", "failed", "-o", file, "--json")
    assert (result.code, result.json["runs"], result.json["anonymous"]) == (0, [RUN_ID, "slow", "failed"], False)
    assert result.json["bytes"] == os.path.getsize(file)
    assert [(one["id"], one["what"]) for one in result.json["missing"]] == [("failed", "accounting")]
    again = run("export", RUN_ID, "-o", file)
    assert (again.code, "not overwritten" in again.err) == (1, True)
    assert run("export", "nosuchrun", "-o", f"{file}.2").code == 1

    checked = run("verify", file, "--json")
    assert (checked.code, checked.json["agrees"]) == (0, True), "with any verdicts"
    assert [run["verdict"] and run["verdict"]["result"] for run in checked.json["runs"]] == ["PASS", "FAIL", None]
    assert "not forgery" in checked.json["caveat"]
    text = run("verify", file)
    assert "Every check that is possible agrees." in text.out
    assert f"run {RUN_ID}  done, 50 of 50 steps, 2.02 s by the rule (last step), PASS 98.0 % of published" in text.out

    damaged = bytearray(Path(file).read_bytes())
    damaged[500] ^= 1
    Path(file).write_bytes(damaged)
    wrong = run("verify", file, "--json")
    assert wrong.code == 1
    assert "not a valid archive" in wrong.json["error"]["what"]
    assert run("verify", str(tmp_path / "nothing")).code == 1
    anonymous = run("export", RUN_ID, "-o", f"{file}.3", "--anonymous")
    assert "replaced by aliases" in anonymous.out
    assert "replaced by aliases" in run("verify", f"{file}.3").out


PAUSES = """
import signal, sys
from llmb_tui.cli import main
from llmb_tui.evidence import export, verify

def pause(*_):
    print("under way", flush=True)
    signal.pause()

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests themselves were started with, such as nohup
export.pack = verify.unpack = pause
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("verb", ["export", "verify"])
def test_a_terminated_export_leaves_no_log_behind(
    laptop: Laptop, tmp_path: Path, kind: signal.Signals, verb: str
) -> None:
    """The files there have not been searched for secrets yet."""
    laptop.add()
    target, temporary = tmp_path / "out" / "a.tar.zst", tmp_path / "tmp"
    for folder in (target.parent, temporary):
        folder.mkdir()
    words = ("export", RUN_ID, "-o", str(target)) if verb == "export" else ("verify", str(target))
    command = [sys.executable, "-c", PAUSES, *words]
    variables = verbs.environment(tmp_path, TMPDIR=str(temporary))
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "under way\n"
        assert len(list(temporary.iterdir())) == 1
        program.send_signal(kind)
        assert program.wait(timeout=60) == -kind
    assert [*temporary.iterdir(), *target.parent.iterdir()] == []


def test_a_missing_temporary_directory_is_named(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.add()
    laptop.export(tmp_path / "a.tar.zst")

    def none(**_: Any) -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.mkdtemp", none)
    for words in (("export", RUN_ID, "-o", str(tmp_path / "b.tar.zst")), ("verify", str(tmp_path / "a.tar.zst"))):
        result = Verbs(tmp_path)(*words, "--json")
        assert result.code == 2
        assert "No usable temporary directory found" in result.json["error"]["why"]
        assert "TMPDIR" in result.json["error"]["fix"]


def test_a_suite_is_exported_with_its_document_and_all_of_its_runs(laptop: Laptop, tmp_path: Path) -> None:
    rows = tuple(SuiteRow(f"row {name}", NEMOTRON, "direct", name) for name in (RUN_ID, "slow", "unsent"))
    suite = Suite("noise", "repeat", "eos", rows, digest="d", id="s261123080000abcd", created_at=1.0)
    documents.save(laptop.places.suites / suite.id / "suite.json", suite)
    laptop.add()
    laptop.add("slow", log_text(2.4))
    run, file = Verbs(tmp_path), str(tmp_path / "a.tar.zst")
    result = run("export", suite.id, "slow", "-o", file, "--anonymous", "--json")
    assert (result.code, result.json["runs"], result.json["suites"]) == (0, [RUN_ID, "slow"], [suite.id])
    assert json.loads(contents(Path(file))[f"suites/{suite.id}.json"])["cluster"] == "cluster-1"
    findings = {finding["what"]: finding for finding in run("verify", file, "--json").json["findings"]}
    assert findings[f"runs of suite {suite.id}"]["outcome"] == "unknown"
    assert "2 of its 3 runs are in the archive: 1 FAIL, 1 PASS." in findings[f"runs of suite {suite.id}"]["found"]
