"""The secret of an application: who enters it, where it is stored, and that no output contains it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

from llmb_tui.cluster.failures import AuthenticationError, LoginNeededError, UnreachableError
from llmb_tui.cluster.runai import secret as secret_of
from llmb_tui.cluster.runai.cluster import RunaiCluster
from llmb_tui.cluster.runai.secret import AppSecret
from tests.cluster.login_node import Person
from tests.kit.runai import Fault, FaultySite, runai_site
from tests.launch.runai.workload_cases import PROFILE

CANARY = "canary7391"


class Ring(KeyringBackend):
    """A keyring in memory, which can fail with an error that quotes the secret."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.fails = False

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.fails:
            raise OSError(f"cannot keep {password}")
        self.kept[service, username] = password


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ring]:
    monkeypatch.delenv("APP_SECRET", raising=False)
    monkeypatch.setattr(secret_of, "known_secrets", {})
    before, made = keyring.get_keyring(), Ring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[FaultySite]:
    with runai_site(tmp_path) as site:
        yield site


def test_it_is_taken_from_the_environment_then_from_the_keyring(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    assert AppSecret(PROFILE)() is None
    ring.set_password("llmb-tui", f"runai {PROFILE.app_id} at {PROFILE.place}", CANARY)
    assert AppSecret(PROFILE)() == CANARY
    secret_of.known_secrets.clear()
    monkeypatch.setenv("APP_SECRET", "another")
    assert AppSecret(PROFILE)() == "another"


@pytest.mark.parametrize(("variable", "other"), [("APP_ID", "somebody"), ("BASE_URL", "https://other.example")])
def test_the_secret_of_another_application_is_not_sent(
    ring: Ring, monkeypatch: pytest.MonkeyPatch, variable: str, other: str
) -> None:
    ring.set_password("llmb-tui", f"runai {PROFILE.app_id} at {PROFILE.place}", CANARY)
    monkeypatch.setenv("APP_SECRET", "another")
    monkeypatch.setenv("APP_ID", PROFILE.app_id)
    monkeypatch.setenv("BASE_URL", PROFILE.base_url)
    monkeypatch.setenv(variable, other)
    assert AppSecret(PROFILE)() == CANARY


def test_nothing_shows_it(ring: Ring) -> None:
    assert ring
    cluster = RunaiCluster(PROFILE)
    cluster.secret.give(CANARY)
    shown = (cluster, cluster.secret, cluster.api, cluster.profile, vars(cluster), vars(cluster.secret))
    assert not [one for one in shown if CANARY in repr(one)]


def test_the_prompt_for_the_secret_hides_it_repeats_if_wrong_and_offers_to_store(ring: Ring, demo: FaultySite) -> None:
    with contextlib.closing(RunaiCluster(demo.profile)) as cluster:
        with pytest.raises(LoginNeededError, match="is needed"):
            cluster.connect(None)
        wrong = Person([CANARY])
        with pytest.raises(AuthenticationError) as caught:
            cluster.connect(wrong)
        assert CANARY not in str(caught.value)
        person = Person([demo.app_secret, "yes"])
        cluster.connect(person)
        assert [echo for _, echo in wrong.prompts + person.prompts] == [False, False, True]
        assert list(ring.kept.values()) == [demo.app_secret]
        assert cluster.project().name == demo.project


@pytest.mark.usefixtures("ring")
def test_a_refused_secret_is_sent_again_only_if_the_user_enters_it_again(demo: FaultySite) -> None:
    demo.faults += [Fault("POST", "/token", status=401)]
    with contextlib.closing(RunaiCluster(demo.profile)) as cluster:
        cluster.secret.give(demo.app_secret)
        for _ in range(2):
            with pytest.raises(AuthenticationError):
                cluster.connect(None)
        assert demo.request_count("POST", "/token") == 1, "the secret was not sent again"
        cluster.connect(Person([demo.app_secret, "no"]))
        assert cluster.project().name == demo.project


@pytest.mark.parametrize("answer", ["", "no", None])
def test_a_secret_is_not_stored_without_the_users_yes(ring: Ring, demo: FaultySite, answer: str | None) -> None:
    with contextlib.closing(RunaiCluster(demo.profile)) as cluster:
        cluster.connect(Person([demo.app_secret, answer]))
        assert cluster.project().name == demo.project
    assert ring.kept == {}


def test_a_failed_keyring_is_reported_without_the_secret(ring: Ring, demo: FaultySite) -> None:
    ring.fails = True
    person = Person([demo.app_secret, "yes", ""])
    with contextlib.closing(RunaiCluster(demo.profile)) as cluster:
        cluster.connect(person)
        assert cluster.project().name == demo.project
    message = person.prompts[-1][0]
    assert "not stored" in message
    assert not [text for text, _ in person.prompts if demo.app_secret in text]


@pytest.mark.usefixtures("ring")
def test_the_secret_is_not_requested_when_the_server_does_not_answer(demo: FaultySite) -> None:
    profile, person = demo.profile, Person([CANARY])
    for wrong in (replace(profile, base_url="https://127.0.0.1:9/api/v1"), replace(profile, ca_file=None)):
        with contextlib.closing(RunaiCluster(wrong)) as cluster, pytest.raises(UnreachableError):
            cluster.connect(person)
    assert person.prompts == []
