"""API keys: which ones a plan needs, their valid forms, and the servers' answers to them; on the demo cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cli import flags
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.install import direct_install
from llmb_tui.launch.install import Installer
from llmb_tui.launch.procedure_loader import secrets_of
from llmb_tui.launch.secrets import forget_secret, give_secret, put_secret
from llmb_tui.preflight.access import secret_checks, secret_states, try_secret
from llmb_tui.preflight.fetch import Credentials
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.registry import ask_registry
from llmb_tui.preflight.secret import SECRETS, SecretNeed, SecretValue, secret_of
from llmb_tui.request import RunRequest
from llmb_tui.store import secret_store
from tests.cluster.login_node import SHELL_PRINTS, LoginNode
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan, replace_command
from tests.rig.install.web import LAYERS, Web

IMAGE = "nvidia/nemo:25.02.01"
KEY = "nvapi-0123456789abcdef"
NGC = SecretNeed("ngc", "NGC API key", "", "https://ngc.example.org", "", False, (IMAGE,))
HUB = SecretNeed(
    "hugging-face", "Hugging Face token", "", "https://hf.example.org", "", True, ("meta-llama/Llama-3.1",)
)


# Required keys


def test_the_direct_procedure_requires_no_key(catalog: Catalog, make_plan: MakePlan) -> None:
    for row in ROWS.values():
        needs = secrets_of(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE))
        assert needs[0].id == "ngc"
        assert not any(need.required for need in needs)


def test_the_upstream_procedure_requires_the_hubs_token_if_its_scripts_use_it(
    catalog: Catalog, make_plan: MakePlan
) -> None:
    for name, row in ROWS.items():
        needs = secrets_of(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE, "upstream"))
        assert [need.id for need in needs if need.required] == (
            ["hugging-face"] if name in ("llama3.1-25.04", "llama3.1-24.11") else []
        )


def test_a_secret_need_names_its_source_and_the_waiting_time(catalog: Catalog, make_plan: MakePlan) -> None:
    row = ROWS["llama3.1-25.04"]
    ngc, hub = secrets_of(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE))
    assert ngc.opens == ("nvidia/nemo:25.02.01",)
    assert (ngc.where, hub.where) == (
        "https://org.ngc.nvidia.com/setup/api-keys",
        "https://huggingface.co/settings/tokens",
    )
    assert hub.opens == ("meta-llama/Meta-Llama-3-70B",)
    assert "which can take a day or more. (README, Prerequisites and Request Access; launch.sh)" in hub.how_long
    assert "Our script, which is used here, downloads nothing from it." in hub.why


# Valid forms


@pytest.mark.parametrize(
    "typed", ["", "   ", "short", "two words-of-a-key", 'a"quoted"key', "$(touch /tmp/x)", "a" * 600]
)
def test_an_invalid_key_is_refused_without_being_quoted(typed: str) -> None:
    with pytest.raises(LlmbError) as caught:
        secret_of("ngc", typed)
    assert caught.value.exit_code == 1
    assert not typed.strip() or typed.strip() not in str(caught.value)


def test_blanks_around_a_key_are_the_terminals() -> None:
    assert secret_of("ngc", f" {KEY}\r\n").value == KEY


def test_no_repr_shows_a_key() -> None:
    assert KEY not in repr(SecretValue("ngc", KEY))
    assert KEY not in repr(Credentials(token=KEY)) + repr(Credentials(login=KEY))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(LlmbError, match="No secret is named 'aws'"):
        secret_of("aws", KEY)


def test_the_verb_offers_every_secret() -> None:
    assert flags.SECRETS == SECRETS


# Keys on a cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DemoCluster]:
    demo_cluster = DemoCluster(tmp_path / "cluster")
    demo_cluster.start()
    yield demo_cluster
    demo_cluster.stop()


@pytest.fixture
def session(cluster: DemoCluster) -> Iterator[SlurmCluster]:
    made = SlurmCluster(cluster.profile)
    yield made
    made.close()


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as made:
        yield made


@pytest.fixture
def endpoints(web: Web) -> Sources:
    return Sources(registry=web.url, hub=web.url)


def test_a_key_is_put_there_for_its_owner_alone(cluster: DemoCluster, session: SlurmCluster) -> None:
    home = cluster.root / "home"
    assert not any(state.on_cluster for state in secret_states(session))
    message = give_secret(session, "ngc", KEY, keep=False)
    path = home / ".llmb-tui/enroot/.credentials"
    assert message == f"The NGC API key is in {path}, readable only by you."
    assert path.read_text().splitlines() == [
        f"machine nvcr.io login $oauthtoken password {KEY}",
        f"machine authn.nvidia.com login $oauthtoken password {KEY}",
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    assert {folder.stat().st_mode & 0o777 for folder in (path.parent, path.parent.parent)} == {0o700}
    assert [(state.id, state.on_cluster) for state in secret_states(session)] == [
        ("ngc", True),
        ("hugging-face", False),
    ]
    path.with_name(f"{path.name}.0123abcd.part").write_text(KEY)  # remains of a killed write
    forget_secret(session, "ngc")
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("printed", SHELL_PRINTS)
def test_output_of_a_login_shell_is_not_part_of_an_answer(tmp_path: Path, printed: str) -> None:
    node = LoginNode(tmp_path)
    node.shell_prints = printed
    try:
        with closing(SlurmCluster(node.profile())) as session:
            session.connect()
            assert [state.on_cluster for state in secret_states(session)] == [False, False]
            path = put_secret(session, secret_of("ngc", KEY))
            assert KEY in Path(path).read_text()
            assert [state.on_cluster for state in secret_states(session)] == [True, False]
    finally:
        node.close()


@pytest.mark.parametrize("printed", SHELL_PRINTS)
def test_a_key_is_tested_whatever_a_login_shell_prints(
    tmp_path: Path, web: Web, endpoints: Sources, printed: str
) -> None:
    web.key = KEY
    with closing(LoginNode(tmp_path)) as node, closing(SlurmCluster(node.profile())) as session:
        node.shell_prints = printed
        assert try_secret(session, NGC, SecretValue("ngc", KEY), endpoints).result == "valid"
        assert try_secret(session, NGC, SecretValue("ngc", "nvapi-a-wrong-one"), endpoints).result == "refused"
        assert try_secret(session, HUB, SecretValue("hugging-face", web.token), endpoints).result == "valid"


def test_a_read_only_home_directory_is_reported(cluster: DemoCluster, session: SlurmCluster) -> None:
    (cluster.root / "home/.llmb-tui").write_text("a file is in the way")
    with pytest.raises(LlmbError, match="The NGC API key could not be written to the cluster") as caught:
        put_secret(session, SecretValue("ngc", KEY))
    assert KEY not in str(caught.value)


def test_the_tokens_of_other_programs_are_seen(cluster: DemoCluster, session: SlurmCluster) -> None:
    token = cluster.root / "home/.cache/huggingface/token"
    token.parent.mkdir(parents=True)
    token.write_text("hf_x")
    assert [state.own for state in secret_states(session)] == [False, True]


# The servers' answers


def test_a_registry_without_a_key_reports_the_image_size(session: SlurmCluster, web: Web) -> None:
    answer = ask_registry(session, IMAGE, None, web.url)
    assert (answer.granted, answer.download_bytes) == ("granted", sum(LAYERS))


def test_a_valid_key_opens_the_image(session: SlurmCluster, web: Web, endpoints: Sources) -> None:
    web.key = KEY
    result = try_secret(session, NGC, SecretValue("ngc", KEY), endpoints)
    assert (result.result, result.words) == ("valid", f"The registry provides {IMAGE} with this API key.")


def test_a_wrong_key_is_refused(session: SlurmCluster, web: Web, endpoints: Sources) -> None:
    web.key = KEY
    result = try_secret(session, NGC, SecretValue("ngc", "nvapi-a-wrong-one"), endpoints)
    assert result.result == "refused"
    assert result.words == "The registry rejects this API key (HTTP 401)."
    assert "create a new one at https://ngc.example.org" in result.fix


def test_a_key_may_be_valid_and_not_for_this_image(session: SlurmCluster, web: Web, endpoints: Sources) -> None:
    web.key = KEY
    web.closed_images.add(IMAGE)
    result = try_secret(session, NGC, SecretValue("ngc", KEY), endpoints)
    assert result.result == "no access yet"


def test_a_missing_key_is_reported_as_needed_or_optional(session: SlurmCluster, web: Web, endpoints: Sources) -> None:
    assert try_secret(session, NGC, None, endpoints).words == f"The registry provides {IMAGE} without an API key."
    web.key = KEY
    result = try_secret(session, NGC, None, endpoints)
    assert result.result == "refused"
    assert result.words == f"The registry does not provide {IMAGE} without an API key (HTTP 401)."


def test_a_key_is_not_tested_if_the_image_is_unknown_or_the_registry_fails(
    session: SlurmCluster, web: Web, endpoints: Sources
) -> None:
    web.key = KEY
    unknown = try_secret(session, replace(NGC, opens=("nvidia/nemo:99.99",)), SecretValue("ngc", KEY), endpoints)
    assert unknown.result == "not tested"
    web.out_of_order = True
    broken = try_secret(session, NGC, SecretValue("ngc", KEY), endpoints)
    assert (broken.result, "HTTP 503" in broken.words) == ("not tested", True)


def test_a_registry_is_not_sent_to_another_host_with_the_key(session: SlurmCluster, web: Web) -> None:
    with Web() as other:
        web.realm_host = f"127.0.0.1:{other.port}"
        answer = ask_registry(session, IMAGE, SecretValue("ngc", KEY), web.url)
        assert answer.granted == "unknown"
        assert other.requests == []
    assert web.requests


def test_a_token_is_tested_with_the_repositories_that_it_has_to_open(
    session: SlurmCluster, web: Web, endpoints: Sources
) -> None:
    result = try_secret(session, HUB, SecretValue("hugging-face", web.token), endpoints)
    assert (result.result, result.words) == ("valid", "The token is valid, with access to meta-llama/Llama-3.1.")
    web.gated.add("meta-llama/Llama-3.1")
    closed = try_secret(session, HUB, SecretValue("hugging-face", web.token), endpoints)
    assert closed.result == "no access yet"
    assert closed.fix.startswith(f"Ask for access at {web.url}/meta-llama/Llama-3.1.")
    wrong = try_secret(session, HUB, SecretValue("hugging-face", "hf_wrong-one"), endpoints)
    assert wrong.result == "refused"


def test_a_login_node_without_curl_cannot_test(cluster: DemoCluster, session: SlurmCluster, endpoints: Sources) -> None:
    replace_command(cluster.root, "curl", "echo 'curl: not found' >&2; exit 127")
    result = try_secret(session, NGC, SecretValue("ngc", KEY), endpoints)
    assert result.result == "not tested"
    assert result.words.endswith("curl: not found.")


def test_the_checks_of_a_preflight(session: SlurmCluster) -> None:
    only = secret_checks(session, (NGC, replace(HUB, required=False)), Sources())
    assert [(check.id, check.status) for check in only] == [("secret-ngc", "ok")]
    ngc, hub = secret_checks(session, (NGC, HUB), Sources())
    assert (ngc.found, hub.status) == (f"The registry provides {IMAGE} without an API key.", "warning")
    put_secret(session, SecretValue("hugging-face", "hf_not-known-there"))
    assert secret_checks(session, (HUB,), Sources())[0].status == "failed"


def test_the_image_size_is_the_recipes_range_if_the_registry_is_unreachable(
    cluster: DemoCluster, session: SlurmCluster, catalog: Catalog, make_plan: MakePlan
) -> None:
    replace_command(cluster.root, "curl", "echo 'curl: (6) Could not resolve host: nvcr.io' >&2; exit 6")
    row = ROWS["nemotron4-25.04"]
    plan = direct_install(RunRequest(catalog.recipe(row[0]), make_plan(*row), cluster.profile))
    assert Installer(session, cluster.profile, plan).probe()[1].size == "5–60 GB"


# Keys on this computer


class Memory(KeyringBackend):
    """A keyring in memory."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # keyring's own is not typed
        self.held: dict[tuple[str, str], str] = {}
        self.locked = False

    def _open(self) -> dict[tuple[str, str], str]:
        if self.locked:
            raise KeyringLocked("the words of the service, with " + KEY)
        return self.held

    def get_password(self, service: str, username: str) -> str | None:
        return self._open().get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._open()[service, username]


@pytest.fixture
def memory() -> Iterator[Memory]:
    before = keyring.get_keyring()
    made = Memory()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_a_key_is_stored_in_the_keyring_only_on_request(memory: Memory, session: SlurmCluster) -> None:
    give_secret(session, "ngc", KEY, keep=False)
    assert memory.held == {}
    message = give_secret(session, "ngc", KEY, keep=True)
    assert message.endswith("This computer's keyring also stores it.")
    assert list(memory.held.values()) == [KEY]
    assert secret_states(session, keyring=True)[0].in_keyring


def test_a_kept_key_can_be_given_again_and_forgotten(memory: Memory, session: SlurmCluster) -> None:
    secret_store.keep("ngc", KEY)
    give_secret(session, "ngc", None, keep=False)
    assert secret_states(session, keyring=True)[0].on_cluster
    assert (
        forget_secret(session, "ngc") == "The NGC API key is no longer on the cluster, nor in this computer's keyring."
    )
    assert memory.held == {}
    with pytest.raises(LlmbError, match="has no such API key"):
        give_secret(session, "ngc", None, keep=False)


def test_a_locked_keyring_stops_nothing_and_shows_nothing(memory: Memory, session: SlurmCluster) -> None:
    memory.locked = True
    message = give_secret(session, "ngc", KEY, keep=True)
    assert message.endswith("It is not stored on this computer: The keyring is locked, and was not unlocked.")
    assert KEY not in message
    assert secret_states(session, keyring=True)[0].on_cluster


@pytest.mark.parametrize("use", [lambda: secret_store.keep("ngc", KEY), lambda: secret_store.read("ngc")])
def test_without_a_safe_keyring_nothing_is_kept(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, use: Callable[[], object]
) -> None:
    monkeypatch.setattr(Memory, "priority", 0.5)  # as keyring rates plain text files
    with pytest.raises(secret_store.SecretStoreError) as caught:
        use()
    assert caught.value.why == "This computer has no keyring, or no safe one."
    assert memory.held == {}
