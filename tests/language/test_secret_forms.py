"""Texts that have the form of a secret, texts that only resemble one, and the comparison with a public set of rules."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.language.redact import HIDDEN, remember_secret, server_words, without_secrets
from llmb_tui.language.secret_forms import find_secrets
from tests.kit.program_copy import ROOT

VALUE = "canary-7Qz93817"
HEX = "0123456789abcdef0123456789abcdef01234567"
LOGIN = base64.b64encode(b"alice:canary-7Qz93817").decode()
KEY_OF_AZURE = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

SECRETS = {
    # Each text, and the part of it that must not remain.
    f"Authorization: Basic {LOGIN}": LOGIN,
    f"curl -H 'authorization: basic {LOGIN}' https://host": LOGIN,
    f"proxy answered Basic {LOGIN}": LOGIN,
    f"Proxy-Authorization: Token {VALUE}": VALUE,
    f"Authorization: Bearer {VALUE}": VALUE,
    f"bearer {VALUE}0123456789": VALUE,
    f"token={VALUE}": VALUE,
    f"TOKEN={VALUE}": VALUE,
    f"Token : {VALUE}": VALUE,
    f'{{"token": "{VALUE}"}}': VALUE,
    f'"{{\\"access_token\\": \\"{VALUE}\\"}}"': VALUE,
    f"{{'refresh_token': '{VALUE}'}}": VALUE,
    f'os.environ["HF_TOKEN"] = "{VALUE}"': VALUE,
    f"https://host/path?access_token={VALUE}&page=2": VALUE,
    f"secret: {VALUE}": VALUE,
    f"clientSecret => '{VALUE}'": VALUE,
    "client_secret=onlysmallletters": "onlysmallletters",
    "passwd=hunter2": "hunter2",
    "Password=Sommer2025!;Encrypt=yes": "Sommer2025",
    'password: "correct horse battery"': "correct horse",
    f"db_pass={VALUE}": VALUE,
    f"PASSPHRASE: {VALUE}": VALUE,
    f"mysql --password {VALUE} -u root": VALUE,
    f"train.py --hf-token {VALUE} --steps 10": VALUE,
    f"['train.py', '--api_key', '{VALUE}']": VALUE,
    f"--secret={VALUE}": VALUE,
    f"sshpass -p {VALUE} ssh host": VALUE,
    f"curl -s --user 'alice:{VALUE}' https://host/x": VALUE,
    f"PGPASSWORD={VALUE[:6]} psql": VALUE[:6],
    f"SharedAccessKey={VALUE}=;EntityPath=x": VALUE,
    f"npm config: //host/:_authToken={VALUE}": VALUE,
    f"X-Api-Key: {VALUE}": VALUE,
    f"api_key={VALUE}": VALUE,
    f"AccountKey={KEY_OF_AZURE};EndpointSuffix=core.windows.net": KEY_OF_AZURE,
    f"https://bucket/x?X-Amz-Credential=a&X-Amz-Signature={HEX}": HEX,
    f"https://blob/x?sv=2024&sig={HEX}%3D": HEX,
    f"https://storage/x?GoogleAccessId=a&Expires=1&Signature={HEX}": HEX,
    "key AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY": "AIzaSyD",
    "pypi-AgEIcHlwaS5vcmcCJDU3OTM0YjM5LTY0": "AgEIcHlwaS5vcmc",
    f"wandb: Paste an API key from your profile and hit enter: {HEX}": HEX,
    f"wandb login {HEX}": HEX,
    f"Set-Cookie: session={VALUE}; Path=/": VALUE,
    f"cookie: theme=dark99; sid={VALUE}": VALUE,
    f"MIT-MAGIC-COOKIE-1  {HEX[:32]}": HEX[:32],
    f"machine nvcr.io login $oauthtoken password {VALUE}": VALUE,
    f"machine host\n  login alice\n  password {VALUE}\n": VALUE,
    f"redis://:{VALUE}@host:6379": VALUE,
    f'{{"auths": {{"nvcr.io": {{"auth": "{LOGIN}"}}}}}}': LOGIN,
    f"https://hooks.slack.com/services/T0/B0/{HEX}": HEX,
    f"GOCSPX-{HEX}": HEX,
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----": "lQOYBF",
    "a hf_\x1b[32mabcdefghij0123456789\x1b[0m b": "abcdefghij0123456789",
}


@pytest.mark.parametrize("text", SECRETS)
def test_a_text_with_the_form_of_a_secret_is_found_and_hidden(text: str) -> None:
    shown = server_words(f"before {text} after")
    assert SECRETS[text] not in shown
    assert HIDDEN in shown
    if "\x1b" not in text:
        assert any(find_secrets(f"before {text} after".encode()))


HARMLESS = [
    "Invalid token: unexpected",
    "password: authentication failed",
    "Authorization: required, basic authentication failed",
    "a bearer authentication-that-is-required",
    "use --password instead of --token-file /a/path1234",
    '{"eos_token": "endoftext1234", "pad_token": "<|im_end|>"}',
    "time_per_token: 0.0001234567, ms/token: 12.3456789",
    "max_token=16777216 tokens: 8192 token=0x7f12345678ab",
    "fn(token=tokenizer.eos_token, api_key=self.api_key, password=getpass.getpass(), secret=self.secret)",
    "def f(token: str = None, secret: Optional[str] = None, password: bytes = b'')",
    "imagePullSecret: dockerreg-nvcr-2",
    '"image_pull_secret": "dockerreg-nvcr", "hub_credential": "hugging-face-1"',
    f"wandb: run of git commit {HEX}",
    "cache_key: 12345678abcdef, PWD=/root/work1234, pwd: /root/work1234",
    "signature=(a: int, b: int) -> Tensor",
    "task-0123456789-abcdefghijklmn, disk-0123456789-abcdefghijklmn",
    "secret: none, password=****, token=<your token>, SECRET_KEY=$(cat file1234)",
    "-" * 300,
    "cookie: enabled",
    "curl -u $USER:$PASS https://host",
    "docker run --user 1000:1000",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_a_text_that_resembles_a_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


GENUINE = sorted(
    path
    for folder in ("watch/golden", "watch/h100", "watch/cases", "diagnosis/cases", "baseline", "launch/golden")
    for path in (ROOT / "tests" / folder).rglob("*")
    if path.is_file() and path.suffix in (".log", ".out", ".txt", ".sh", ".json", ".jsonl", ".md")
)


def test_genuine_logs_and_answers_contain_no_secret() -> None:
    assert len(GENUINE) > 100
    assert {path.name: found for path in GENUINE if (found := list(find_secrets(path.read_bytes())))} == {}


@given(st.text(st.sampled_from("token=:-_/@eyJ.hf \"'\\\n0aß\ud800"), max_size=200))
def test_any_text_can_be_searched_and_a_hidden_text_has_nothing_to_hide(text: str) -> None:
    hidden = without_secrets(text)
    assert without_secrets(hidden) == hidden
    assert (hidden == text) == (not any(find_secrets(text.encode(errors="surrogatepass"))))


@pytest.mark.parametrize("place", [(1 << 20) + offset for offset in (-200, -20, -3, 0, 5)])
@pytest.mark.parametrize("secret", [f"token={VALUE}", "eyJhbGciOi.eyJzdWIiOi.dozjgNryP4", f"wandb login {HEX}"])
def test_a_secret_is_found_at_any_place_of_a_long_text(secret: str, place: int) -> None:
    text = b"." * (place - 1) + b"\n" + secret.encode() + b"\n" + b"." * 1000
    assert [place <= found.start < place + len(secret) for found in find_secrets(text)] == [True]


def test_a_secret_that_was_sent_is_hidden_however_the_server_writes_it() -> None:
    secret = 'an "odd"/secret of mine'
    remember_secret(secret)
    written = ['an "odd"/secret of mine', r"an \"odd\"\/secret of mine", "an%20%22odd%22%2Fsecret%20of%20mine"]
    written.append(base64.b64encode(secret.encode()).decode())
    for each in written:
        assert server_words(f"secret {each}, not this") == f"secret {HIDDEN}, not this"


def test_words_of_a_server_are_short() -> None:
    assert server_words("x" * 10_000_000, 100) == "x" * 99 + "…"


PUBLIC = {
    # Each rule of detect-secrets that compares forms, and a text that it reports.
    "ArtifactoryDetector": f"x: AKCp{HEX}",
    "AWSKeyDetector": "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
    "AzureStorageKeyDetector": f"AccountKey={KEY_OF_AZURE}",
    "BasicAuthDetector": "https://alice:hunter2hunter2@host/x",
    "CloudantDetector": f"cloudant_password = '{'0a1b2c3d' * 8}'",
    "GitHubTokenDetector": "ghp_" + "a1B2" * 9,
    "GitLabTokenDetector": "glpat-a1B2a1B2a1B2a1B2a1B2",
    "IbmCloudIamDetector": f"ibm_api_key: '{'a1B2' * 11}'",
    "IbmCosHmacDetector": f"ibm_cos_secret_access_key = '{'0a1b2c3d' * 6}'",
    "JwtTokenDetector": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "KeywordDetector": f'password = "{VALUE}"',
    "NpmDetector": "//registry.npmjs.org/:_authToken=ab12ab34-cd56-7890-1234-abcdef123456",
    "OpenAIDetector": "sk-a1B2a1B2a1B2a1B2a1B2T3BlbkFJa1B2a1B2a1B2a1B2a1B2",
    "PrivateKeyDetector": "-----BEGIN RSA PRIVATE KEY-----",
    "PypiTokenDetector": "pypi-AgEIcHlwaS5vcmc" + "a1B2" * 20,
    "SendGridDetector": f"SG.{'a1B2' * 5}a1.{'a1B2' * 10}a1B",
    "SlackDetector": "xoxb-123456789012-abcdefghijkl",
    "SoftlayerDetector": f"softlayer_api_key = '{'0a1b2c3d' * 8}'",
    "SquareOAuthDetector": f"sq0csp-{'a1B2' * 10}a1B",
    "StripeDetector": "sk_live_" + "a1B2" * 6,
    "TelegramBotTokenDetector": "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
}
NOT_SEARCHED = {
    "Base64HighEntropyString": "finds checksums and commits",
    "HexHighEntropyString": "finds checksums and commits",
    "IPPublicDetector": "an address is no secret",
    "DiscordBotTokenDetector": "has no fixed part at which a search could begin",
    "MailchimpDetector": "has no fixed part at which a search could begin",
    "TwilioKeyDetector": "begins with two letters, as words do",
}


def rules() -> dict[str, Any]:
    kinds: dict[str, Any] = get_mapping_from_secret_type_to_class()
    return {kind.__name__: kind() for kind in kinds.values()}


def test_each_form_of_a_public_set_of_rules_is_found_or_left_out_for_a_reason() -> None:
    public = rules()
    assert set(public) == set(PUBLIC) | set(NOT_SEARCHED)
    for name, text in PUBLIC.items():
        assert public[name].analyze_line(filename="a.log", line=text, line_number=1), f"{name} no longer reports {text}"
        assert any(find_secrets(text.encode())), name


def test_of_genuine_logs_the_public_rules_report_nothing_that_is_missed_here() -> None:
    public = [rule for name, rule in rules().items() if name in PUBLIC]
    reported = {
        (line.strip(), secret.type)
        for path in GENUINE
        for line in path.read_text(errors="replace").splitlines()
        if len(line) < 5000
        for rule in public
        for secret in rule.analyze_line(filename=str(path), line=line, line_number=1)
    }
    assert reported == set()
