"""Verbs with odd arguments and damaged files: each gives a message, never a traceback, and affects no other file.

The cases are made from a fixed seed; all of them run in this process.
"""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cli import main
from llmb_tui.diagnosis.rule import FACTS, STAGES
from llmb_tui.diagnosis.rules import rules, use_own_rules
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.toml.read import builtin_dir
from tests.kit.runs import make_run

ODD = (
    "", " ", "²", "٣", "-1", "--5", "0", "9" * 5000, "1e9", "nan", "\u202e", "\x1b[2J", "\ud800", "a" * 300,
    "a/b" * 900, "..", "../../etc/passwd", "~", "~nosuchuser", "$(x)", "'; x", "%s", "{0}", "null", "a\nb", "\x00",
    "nemotron4", "15b", "@25.04",
)  # fmt: skip
FLAGS = ("-w", "-s", "--gpu", "-d", "--scale", "--tp", "--gbs", "--layouts", "--seq-len")
RIGHT = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
VERBS = (
    "watch",
    "logs",
    "cancel",
    "results",
    "compare",
    "report",
    "fetch",
    "note",
    "disk",
    "doctor",
    "install",
    "secrets",
    "llmb",
    "config",
    "clusters",
    "nothing",
)


@pytest.fixture
def places(user_places: UserPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserPaths:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return user_places


def _answers(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    printed = capsys.readouterr()
    assert "internal error" not in printed.err, (words, printed.err)
    return code, printed.out, printed.err


@pytest.mark.usefixtures("places")
def test_odd_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(24)
    for verb in VERBS:
        for odd in chance.sample(ODD, 12):
            code, out, _ = _answers(capsys, verb, odd, "--json")
            assert code in (0, 1), (verb, odd)
            assert all(json.loads(line) is not None for line in out.splitlines()), (verb, odd)
    for _ in range(60):
        flag, odd = chance.choice(FLAGS), chance.choice(ODD)
        words = [*RIGHT, flag, odd]
        code, out, err = _answers(capsys, "plan", *words, "--json")
        assert code in (0, 1), (flag, odd)
        assert code == 0 or err, (flag, odd)
        assert len(out.splitlines()) == 1, (flag, odd)


@pytest.mark.usefixtures("places")
def test_odd_lines_do_not_end_a_batch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = {"workload": "nemotron4", "size": "15b", "gpu": "h100", "dtype": "fp8", "scale": 64}
    deep = "[" * 100_000
    lines = [deep, "9" * 5000, '{"scale": ' + "9" * 5000 + "}", "nul", '"\\ud800"', "\x00", "{}"]
    for key in (*right, "tp", "nosuchkey"):
        odd: tuple[object, ...] = ("\ud800", -1, 0, 1e308, None, [], {}, True, "²", 10**30, "a" * 5000)
        lines += [json.dumps({**right, key: value}) for value in odd]
    lines.append(json.dumps(right))
    text = "\n".join(lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    code, out, _ = _answers(capsys, "plan", "--from", "-")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, len(answers)) == (0, len(lines))
    assert answers[-1]["selection"]["scale"] == 64


def _set(**changes: Any) -> Callable[[Path], None]:
    """Change values of a stored run, by their dotted names with two underscores for dots."""

    def damage(folder: Path) -> None:
        document = json.loads((folder / "run.json").read_text())
        for name, value in changes.items():
            *above, last = name.split("__")
            table = document
            for key in above:
                table = table[key]
            table[last] = value
        (folder / "run.json").write_text(json.dumps(document))

    return damage


def _replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return damage


def _file(data: bytes) -> Callable[[Path], None]:
    return _replaced("run.json", lambda path: path.write_bytes(data))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "scale0": _set(plan__selection__scale=0),
    "huge": _set(plan__parallelism__gbs=10**400),
    "steps": _set(plan__steps=0),
    "negative": _set(plan__nodes=-8),
    "otherid": _set(id="../../etc"),
    "nojob": _set(job_ids=[]),
    "nottime": _set(created_at=float("nan")),
    "notrun": _file(b"[]"),
    "empty": _file(b""),
    "binary": _file(bytes(range(256)) * 50),
    "deep": _file(b'{"a":' * 100_000),
    "digits": _file(b'{"id": ' + b"9" * 5000 + b"}"),
    "jsondir": _replaced("run.json", Path.mkdir),
    "jsonpipe": _replaced("run.json", os.mkfifo),
    "logdir": _replaced("log", Path.mkdir),
    "logpipe": _replaced("log", os.mkfifo),
    "logbinary": _replaced("log", lambda path: path.write_bytes(bytes(range(256)) * 500)),
}


def test_a_damaged_run_hides_no_other_run(places: UserPaths, capsys: pytest.CaptureFixture[str]) -> None:
    services = Services(places)
    for run_id in (*DAMAGES, "sound"):
        services.runs.save(make_run(run_id, job_state="FAILED"))
    for name, damage in DAMAGES.items():
        damage(places.runs / name)
    (places.runs / "BAD ID").mkdir()
    (places.runs / "BAD ID" / "run.json").write_text("{}")
    places.journal.write_bytes(b'{"event":' * 100_000 + b'\n\xff\n{"at": 1, "event": "intent"}\n')
    code, out, err = _answers(capsys, "jobs", "--json")
    listed = {run["id"] for run in json.loads(out)}
    assert (code, "sound" in listed) == (0, True)
    for name in (*DAMAGES, "BAD ID"):
        assert str(places.runs / name) in err or name == "logbinary", name
    assert listed <= {"sound", "logdir", "logpipe", "logbinary"}
    _answers(capsys, "config", "validate", "--json")
    for name in DAMAGES:
        code, _, _ = _answers(capsys, "results", name, "--json")
        assert code in (2, 4) or (code == 1 and name in ("jsondir", "jsonpipe")), name
    code, out, _ = _answers(capsys, "results", "sound", "scale0", "--json")
    assert (code, [run["id"] for run in json.loads(out)]) == (2, ["sound"])
    for name in DAMAGES:
        assert _answers(capsys, "compare", name, "sound")[0] in (1, 2), name
        assert _answers(capsys, "report", name, "sound", "-o", f"{name}.html")[0] in (0, 1, 2), name
    assert _answers(capsys, "compare", "--nodes")[0] == 0


def test_a_bad_preset_hides_no_other_preset(places: UserPaths, capsys: pytest.CaptureFixture[str]) -> None:
    places.presets.mkdir(parents=True)
    real = (builtin_dir() / "nemotron4-25.04.toml").read_text()
    bad = {
        "integer": real.replace("gpus_per_node = 8", f"gpus_per_node = {'9' * 5000}"),
        "big": "schema = 1\nworkload = 'x'\nsteps = " + "9" * 400,
        "deep": ".".join("a" * 3000) + " = 1\n",
        "nested": "a = " + "[" * 3000 + "]" * 3000,
        "binary": "\x00\x01",
        "surrogate": 'workload = "\\ud800"',
    }
    for name, text in bad.items():
        (places.presets / f"{name}.toml").write_text(text)
    os.mkfifo(places.presets / "pipe.toml")
    (places.presets / "folder.toml").mkdir()
    names = (*bad, "pipe", "folder")
    chance = random.Random(23)
    for number in range(25):
        (places.presets / f"cut{number}.toml").write_bytes(_cut(real, number, chance))
    code, out, err = _answers(capsys, "list", "--json")
    assert (code, len(json.loads(out)) >= 136) == (0, True)
    assert all(f"{name}.toml" in err for name in names)
    assert _answers(capsys, "plan", *RIGHT, "--json")[0] == 0
    code, out, _ = _answers(capsys, "config", "validate", "--json")
    assert code == 1
    assert {Path(fault["file"]).stem for fault in json.loads(out)["faults"]} >= set(names)


def _cut(real: str, number: int, chance: random.Random) -> bytes:
    """File content that is cut or changed at a random place."""
    start = chance.randrange(len(real))
    changed = real[:start] + (chance.choice(ODD[:16]) if number % 2 else "") + real[start + chance.randrange(60) :]
    return changed.encode("utf-8", "surrogatepass")


def _spoil(folder: Path, real: str, bad: dict[str, str], cuts: int) -> set[str]:
    """Fill a folder with invalid files and some that may be valid. Returns the stems of the invalid ones."""
    folder.mkdir(parents=True)
    always = {
        "deep": ".".join("a" * 3000) + " = 1\n",
        "nested": "a = " + "[" * 3000 + "]" * 3000,
        "binary": "\x00\x01",
        "digits": "port = " + "9" * 5000,
        "empty": "" if "name = " in real else "x = 1",
    }
    for name, text in {**always, **bad}.items():
        (folder / f"{name}.toml").write_text(text)
    os.mkfifo(folder / "pipe.toml")
    (folder / "folder.toml").mkdir()
    (folder / "loop.toml").symlink_to("loop.toml")
    chance = random.Random(23)
    for number in range(cuts):
        (folder / f"cut{number}.toml").write_bytes(_cut(real, number, chance))
    return {*always, *bad, "pipe", "folder", "loop"}


PROFILE = """\
name = "{name}"
host = "eos-login"
account = "acct"
partition = "batch"
install_dir = "/lustre/me/llmb"
port = 2222
cpu_partition = "cpu"
gpu_request = "gres"
reservation = "bench"
segment = 16
exclude = "cn[003,007]"
slurm_params = "comment=x;exclusive"
mounts = ["/data:/data:ro"]
memory = "500G"
cpus_per_task = 8

[env]
NCCL_IB_HCA = "mlx5_0"
"""


def test_a_bad_profile_hides_no_other_cluster(places: UserPaths, capsys: pytest.CaptureFixture[str]) -> None:
    bad = {
        "othername": PROFILE.format(name="sound"),
        "port": PROFILE.format(name="port").replace("2222", "99999999999999999999"),
        "negative": PROFILE.format(name="negative").replace("2222", "-1"),
        "float": PROFILE.format(name="float").replace("2222", "nan"),
        "date": PROFILE.format(name="date").replace("2222", "1979-05-27"),
        "escape": PROFILE.format(name="escape").replace("eos-login", "\\u001b[2J"),
        "dash": PROFILE.format(name="dash").replace("eos-login", "-oProxyCommand=x"),
        "newline": PROFILE.format(name="newline").replace("mlx5_0", "a\\nb"),
        "variable": PROFILE.format(name="variable").replace("NCCL_IB_HCA", "'A B'"),
        "mount": PROFILE.format(name="mount").replace("/data:/data:ro", "../x"),
        "relative": PROFILE.format(name="relative").replace("/lustre/me/llmb", "../llmb"),
        "param": PROFILE.format(name="param").replace("comment=x", "comment=\\u00e9"),
        "segment": PROFILE.format(name="segment").replace("16", "1e400"),
    }
    never = _spoil(places.clusters, PROFILE.format(name="cut"), bad, 40)
    (places.clusters / "sound.toml").write_text(PROFILE.format(name="sound"))
    code, out, err = _answers(capsys, "clusters", "--json")
    names = {entry["name"] for entry in json.loads(out)}
    assert (code, "sound" in names, names & never) == (0, True, set())
    assert all(f"{name}.toml" in err for name in never)
    for name in never:
        code, _, err = _answers(capsys, "doctor", name, "--json")
        assert (code, f"{name}.toml" in err) == (1, True), name
    for verb in (("plan", *RIGHT, "--cluster", "sound"), ("jobs",), ("config", "show")):
        assert _answers(capsys, *verb, "--json")[0] == 0, verb
    code, out, _ = _answers(capsys, "config", "validate", "--json")
    assert code == 1
    assert {Path(fault["file"]).stem for fault in json.loads(out)["faults"]} >= never


def test_a_bad_rule_file_hides_no_other_file(places: UserPaths, capsys: pytest.CaptureFixture[str]) -> None:
    rule = '[[{stage}]]\nwords = ["x"]\npatterns = [{pattern}]\nreason = "{reason}"\nexamples = ["x"]\n'
    patterns = {
        "repeat": "'x{99999999999999999999}'", "groups": "'" + "(" * 5000 + "x" + ")" * 5000 + "'", "open": "'x('",
        "look": "'(?<=x+)x'", "twice": "'(?P<a>x)(?P<a>x)'", "flags": "'x(?i)'", "empty": "''", "number": "5",
    }  # fmt: skip
    reasons = {
        "brace": "{",
        "field": "{a.b}",
        "index": "{a[0]}",
        "empty": "{}",
        "form": "{a:>9999999999}",
        "none": "{a}",
    }
    bad = {f"pattern-{name}": rule.format(stage="submit", pattern=one, reason="r") for name, one in patterns.items()}
    bad |= {f"reason-{name}": rule.format(stage="job", pattern="'x'", reason=one) for name, one in reasons.items()}
    bad["stage"] = rule.format(stage="nosuchstage", pattern="'x'", reason="r")
    real = (builtin_dir() / "failures" / "submit.toml").read_text()
    never = _spoil(places.failures, "[[submit]]".join(real.split("[[submit]]")[:4]), bad, 40)
    sound = rule.format(stage="submit", pattern="'^x.1$'", reason="It is ours.").replace('["x"]', '["x[1"]')
    (places.failures / "sound.toml").write_text(sound)
    messages: list[str] = []
    use_own_rules(places.failures, lambda problem: messages.append(str(problem)))
    try:
        for stage in STAGES:
            for text in ("x", "x[1", *ODD[:20], "Invalid account or account/partition combination specified"):
                match = rules(stage).match(text)
                assert match is None or match.diagnosis(dict.fromkeys(FACTS.get(stage, ()), "f")).reason
        result = rules("submit").match("x[1")
        assert result is not None
        assert result.diagnosis().reason == "It is ours."
        assert all(any(f"{name}.toml" in one for one in messages) for name in never)
    finally:
        use_own_rules(places.config / "nowhere")
    code, out, _ = _answers(capsys, "config", "validate", "--json")
    assert code == 1
    assert {Path(fault["file"]).stem for fault in json.loads(out)["faults"]} >= never
    code, _, err = _answers(capsys, "list", "-w", "grok1", "--json")
    assert (code, "pattern-repeat.toml" in err) == (0, True)
