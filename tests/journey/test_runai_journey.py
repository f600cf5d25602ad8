"""From a selection to a verdict on the simulated Run:ai cluster, by verbs and by keyboard; no secret is left behind.

The site's own folder holds its secrets, as a real one does: what is searched is everything else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.cluster.runai import secret as secret_of
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.demo.runai import documents
from llmb_tui.evidence.pack import unpack
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.wizard.steps import StepId
from tests.kit import verbs
from tests.kit.pilot import choose, loaded, marks, shown_run_state, step_of, submit, until
from tests.kit.runai import FaultySite, runai_site
from tests.kit.verbs import Completed

SELECTION = "-w nemotron4-340b@25.12 -s 340b --gpu h100 -d bf16 --scale 256".split()
HUB = "-w llama3.1@25.04 -s 70b --gpu h100 -d bf16 --scale 64 --hub-tokenizer".split()
HUB_TOKEN = "hf_canary7391canary7391canary7391canary"
WRONG = "wrong7391wrong7391wrong7391"
FAST = 1200.0


@dataclass
class Person:
    """A user who knows the application's secret, with all output and everything on the disk."""

    home: Path
    site: FaultySite
    output: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    """Arguments and environment of every process."""

    def call(self, *words: str, secret: str | None = None, code: int = 0) -> Completed:
        variables = {"APP_SECRET": secret} if secret else {}
        secret_of.known_secrets.clear()  # another program begins
        # keyring has none here, and says so.
        nowhere = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        done = verbs.run(words, {**verbs.environment(self.home), **variables, **nowhere})
        self.output += [done.stdout, done.stderr]
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    @property
    def secrets(self) -> dict[str, bytes]:
        """By what they are."""
        texts = {
            "app secret": self.site.app_secret,
            "kubeconfig token": self.site.kubernetes.token,
            "hub token": HUB_TOKEN,
            "wrong secret": WRONG,
            "login": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        }
        return {name: text.encode() for name, text in texts.items()}

    def search(self) -> int:
        """Assert that no secret is anywhere; how many places were searched."""
        files = [path for path in self.home.rglob("*") if path.is_file() and self.site.root not in path.parents]
        places = {str(path): path.read_bytes() for path in files}
        places |= {f"output {number}": text.encode() for number, text in enumerate(self.output)}
        places |= {f"process {number}": text.encode() for number, text in enumerate(self.started)}
        found = [
            (where, name) for where, text in places.items() for name, secret in self.secrets.items() if secret in text
        ]
        assert found == []
        return len(places)


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(secret_of, "known_secrets", {})
    monkeypatch.setattr("llmb_tui.cluster.runai.api.FIRST_PAUSE_S", 0.0)
    every = documents.credentials

    def with_values() -> Any:
        """A control plane that does not keep its secrets to itself."""
        key = '{"key": "HF_TOKEN"'
        return json.loads(json.dumps(every()).replace(f"{key}}}", f'{key}, "value": "{HUB_TOKEN}"}}'))

    monkeypatch.setattr(documents, "credentials", with_values)
    with runai_site(tmp_path / "runai", speed=FAST) as site:
        made = Person(tmp_path, site)
        popen = subprocess.Popen.__init__

        def starting(process: Any, args: Any, *more: Any, **named: Any) -> None:
            made.started.append(f"{args} {named.get('env') or dict(os.environ)}")
            popen(process, args, *more, **named)

        monkeypatch.setattr(subprocess.Popen, "__init__", starting)
        save_profile(tmp_path_places(tmp_path).clusters, replace(site.profile, hub_credential="huggingface"))
        yield made


def tmp_path_places(home: Path) -> UserPaths:
    return UserPaths(home / "config", home / "state")


def test_from_a_wrong_secret_to_a_verdict_and_no_secret_is_left_behind(person: Person) -> None:
    refused = person.call("doctor", "demo-runai", secret=WRONG, code=2)
    assert "does not accept llmb-tui-demo with this secret" in refused.stderr
    assert "copy its secret again" in refused.stderr
    refused = person.call("submit", "--cluster", "demo-runai", *SELECTION, "--yes", secret=WRONG, code=2)
    assert "copy its secret again" in refused.stderr
    assert person.site.workloads.all() == []
    unknown = person.call("doctor", "demo-runai", "--json", code=2)
    assert "is needed" in json.loads(unknown.stdout)["error"]["what"]

    knowing = person.site.app_secret
    assert json.loads(person.call("doctor", "demo-runai", *SELECTION, "--json", secret=knowing).stdout)["passed"]
    installed = json.loads(person.call("install", "demo-runai", *SELECTION, "--json", secret=knowing).stdout)
    assert {step["status"] for step in installed} == {"done"}
    submitted = json.loads(
        person.call("submit", "--cluster", "demo-runai", *SELECTION, "--yes", "--json", secret=knowing).stdout
    )
    run = submitted["id"]
    assert (submitted["procedure"], len(submitted["job_ids"])) == ("runai", 1)
    changes = person.call("watch", run, "--json", secret=knowing).stdout.splitlines()
    final = json.loads(changes[-1])
    assert (final["state"], final["steps_done"]) == ("done", 50)
    assert final["verdict"]["result"] in ("PASS", "WARN")
    assert "train_step_timing in s" in person.call("logs", run, secret=knowing).stdout
    (result,) = json.loads(person.call("results", run, "--json", secret=knowing).stdout)
    assert result.pop("result")["loss"]["falls"]
    assert result == final
    assert json.loads(person.call("jobs", "--json", secret=knowing).stdout) == [{**final, "note": "", "tags": []}]
    assert json.loads(person.call("clusters", "--json").stdout)[0]["name"] == "demo-runai"

    archive, unpacked = person.home / "evidence.tar.zst", person.home / "unpacked"
    person.call("export", run, "-o", str(archive), "--anonymous", secret=knowing)
    checked = json.loads(person.call("verify", str(archive), "--json").stdout)
    found = {one["what"]: one["outcome"] for one in checked["findings"]}
    assert (checked["agrees"], found["accounting against record"]) == (True, "agrees")
    unpacked.mkdir()
    unpack(archive, unpacked)

    # The tokenizer comes from the model hub: the pods have the token from Run:ai, and nobody else.
    fetching = json.loads(
        person.call("submit", "--cluster", "demo-runai", *HUB, "--yes", "--json", secret=knowing).stdout
    )
    cancelled = person.call("cancel", fetching["id"], "--yes", secret=knowing)
    assert "Traceback" not in cancelled.stderr
    hub = person.site.workloads.find(*fetching["job_ids"])
    assert hub is not None
    assert {"name": "HF_TOKEN", "secret": {"name": "genericsecret-huggingface", "key": "HF_TOKEN"}} in hub.body["spec"][
        "environmentVariables"
    ]
    assert person.search() > 15


def test_the_demo_ends_with_a_verdict_without_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.demo.runai.site.DemoRunai.__init__.__kwdefaults__", {**_defaults(), "speed": FAST})
    monkeypatch.setattr("tempfile.tempdir", None)
    done = verbs.run(("demo", "--cluster", "runai", "--headless", "--json"), verbs.environment(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"verdict: (PASS|WARN) \d+\.\d % of published.*", lines[-1])
    stages = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert stages == ["plan", "connect", "preflight", "install", "render", "submit", "watch", "verdict"]
    assert "simulated" in lines[1]
    assert json.loads(done.stdout)["verdict"]["result"] in ("PASS", "WARN")


def _defaults() -> dict[str, Any]:
    from llmb_tui.demo.runai.site import DemoRunai

    return dict(DemoRunai.__init__.__kwdefaults__ or {})


Change = Callable[[RunaiProfile], RunaiProfile]


@pytest.mark.parametrize(
    ("change", "code", "what", "mend"),
    [
        (lambda p: replace(p, base_url="https://127.0.0.1:9/api/v1"), 2, "cannot be reached", "Check the URL"),
        (lambda p: replace(p, base_url="https://no.such.invalid/api/v1"), 2, "no.such.invalid", "Check the URL"),
        (lambda p: replace(p, ca_file=None), 2, "certificate", "certificate"),
        (lambda p: replace(p, ca_file="/nonexistent.pem"), 2, "/nonexistent.pem", "certificates in PEM"),
        (lambda p: replace(p, project="nobody"), 1, "nobody", "Set one of your projects"),
        (lambda p: replace(p, mounts=("data:/data:nowhere",)), 1, "nowhere", "Use a claim of the project"),
        (lambda p: replace(p, node_pool="a100"), 1, "a100", "node pool"),
    ],
    ids=["closed-port", "unknown-name", "untrusted", "no-ca-file", "project", "claim", "node-pool"],
)
@pytest.mark.parametrize("verb", ["doctor", "submit"])
def test_each_error_ends_in_a_sentence_with_the_remedy(  # noqa: PLR0917
    person: Person, change: Change, code: int, what: str, mend: str, verb: str
) -> None:
    save_profile(tmp_path_places(person.home).clusters, change(person.site.profile))
    words = ("doctor", "demo-runai") if verb == "doctor" else ("submit", "--cluster", "demo-runai", "--yes")
    done = person.call(*words, *SELECTION, secret=person.site.app_secret, code=code)
    output = done.stdout + done.stderr
    assert what in output
    assert mend in output
    assert person.site.workloads.all() == []
    person.search()


async def test_by_keyboard_to_a_verdict_and_no_picture_shows_a_secret(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_SECRET", person.site.app_secret)
    app = LlmbApp(Services(tmp_path_places(person.home)))
    pictures: list[str] = []
    async with app.run_test(size=(120, 36)) as pilot:
        await to_review(pilot, pictures)
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the run is done")
        final = shown_run_state(pilot)
        pictures.append(app.export_screenshot())
        assert final.progress.steps_done == 50
        assert final.verdict is not None
        assert final.verdict.result in ("PASS", "WARN")
        person.output.append(repr(final))
    assert all("simulated" in picture for picture in pictures[-2:])
    person.output += pictures
    person.search()


async def to_review(pilot: Pilot[None], pictures: list[str]) -> None:
    await loaded(pilot)
    await choose(pilot, "workload", "nemotron4-340b@25.12/340b")
    await pilot.press("enter", "tab")
    await choose(pilot, "dtype", "bf16")
    await pilot.press("enter")
    await choose(pilot, "scale", "256")
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
    pictures.append(pilot.app.export_screenshot())
    await pilot.press("enter")
    if step_of(pilot) is StepId.INSTALL:
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "nothing has to be installed")
        await pilot.press("enter")
    assert step_of(pilot) is StepId.REVIEW
    pictures.append(pilot.app.export_screenshot())
