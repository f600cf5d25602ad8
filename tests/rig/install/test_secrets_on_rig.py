"""Keys on a real login node, tested from there against a registry and a model hub on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llmb_tui.launch.secrets import forget_secret, give_secret, put_secret
from llmb_tui.preflight.access import secret_states, try_secret
from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.secret import SecretNeed, SecretValue
from tests.rig.cluster import Rig
from tests.rig.install.site import Site
from tests.rig.install.web import Web

KEY = "nvapi-0123456789abcdef"
NGC = SecretNeed("ngc", "NGC API key", "", "https://ngc.example.org", "", False, ("nvidia/nemo:25.02.01",))
HUB = SecretNeed(
    "hugging-face", "Hugging Face token", "", "https://hf.example.org", "", True, ("meta-llama/Llama-3.1",)
)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


def test_the_stored_key_is_tested(site: Site, web: Web) -> None:
    session = site.session()
    web.key = KEY
    # Under the registry's own name, because the key on the cluster is stored for that name.
    sources = Sources(registry=f"http://nvcr.io:{web.port}", hub=web.url)
    without_key = try_secret(session, NGC, None, sources)
    assert (without_key.result, "without an API key" in without_key.words) == ("refused", True)
    give_secret(session, "ngc", KEY, keep=False)
    stored_key = try_secret(session, NGC, None, sources)
    assert stored_key.result == "valid"
    assert stored_key.words == "The registry provides nvidia/nemo:25.02.01 with this API key."
    web.key = "nvapi-another-one"
    assert try_secret(session, NGC, None, sources).result == "refused"
    assert forget_secret(session, "ngc").startswith("The NGC API key is no longer on the cluster")
    assert not secret_states(session)[0].on_cluster


def test_the_stored_token_is_tested(site: Site, web: Web) -> None:
    session = site.session()
    endpoints = Sources(registry=web.url, hub=web.url)
    assert try_secret(session, HUB, None, endpoints).result == "not tested"
    path = put_secret(session, SecretValue("hugging-face", web.token))
    assert path == "/home/operator/.llmb-tui/hugging-face-token"
    assert (site.rig.home / ".llmb-tui/hugging-face-token").read_text() == f"{web.token}\n"
    assert try_secret(session, HUB, None, endpoints).result == "valid"
    web.gated.add("meta-llama/Llama-3.1")
    closed_repository = try_secret(session, HUB, None, endpoints)
    assert closed_repository.result == "no access yet"
    assert f"{web.url}/meta-llama/Llama-3.1" in closed_repository.fix


def test_a_key_in_the_users_credentials_file_is_used_and_not_removed(site: Site, rig: Rig) -> None:
    session = site.session()
    assert [(state.on_cluster, state.own) for state in secret_states(session)] == [(False, False)] * 2
    line = "machine nvcr.io login $oauthtoken password mine"
    rig.as_operator(f"mkdir -p ~/.config/enroot && echo '{line}' >~/.config/enroot/.credentials", check=True)
    assert [(state.on_cluster, state.own) for state in secret_states(session)] == [(False, True), (False, False)]
    with rig.knob("needs-key", "mine"):
        assert [state.status for state in site.run()] == ["done"] * 3
    give_secret(session, "ngc", KEY, keep=False)
    forget_secret(session, "ngc")
    assert (rig.home / ".config/enroot/.credentials").read_text() == f"{line}\n"


def test_no_secret_is_in_an_argument_while_it_is_tested(site: Site, rig: Rig, web: Web) -> None:
    """While the server delays its answer, curl is visible among the processes."""
    processes: list[str] = []
    answer = web.answer

    def look_first(path: str, authorization: str, host: str) -> tuple[int, dict[str, str], str]:
        processes.extend(rig.operator_processes())
        return answer(path, authorization, host)

    web.answer = look_first  # type: ignore[method-assign]  # every request lists the running processes
    web.key = KEY
    endpoints = Sources(registry=web.url, hub=web.url)
    assert try_secret(site.session(), NGC, SecretValue("ngc", KEY), endpoints).result == "valid"
    assert try_secret(site.session(), HUB, SecretValue("hugging-face", web.token), endpoints).result == "valid"
    assert sum("curl" in line for line in processes) >= 5
    assert not any(KEY in line or web.token in line for line in processes)


def test_a_network_without_a_way_out_is_no_refusal(site: Site) -> None:
    nowhere = Sources("http://127.0.0.1:1", "", "http://127.0.0.1:1")
    for need, secret in ((NGC, SecretValue("ngc", KEY)), (HUB, SecretValue("hugging-face", KEY))):
        answer = try_secret(site.session(), need, secret, nowhere)
        assert answer.result == "not tested"
        assert "could not be tested from the cluster: curl: (7) Failed to connect" in answer.words
        assert KEY not in repr(answer)
