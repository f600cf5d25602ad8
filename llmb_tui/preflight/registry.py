"""`ask_registry`: asks the container registry, from the cluster, for access to an image and for its size."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from urllib.parse import urlencode, urljoin, urlsplit

from llmb_tui.cluster.session import Session
from llmb_tui.preflight.fetch import NOBODY, Credentials, WebAnswer, fetch
from llmb_tui.preflight.secret import ENROOT_CREDENTIALS, SecretValue

Granted = Literal["granted", "login refused", "no access", "no such image", "unknown"]

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"
_LIST = "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.index.v1+json"
_CHALLENGE = re.compile(r"(?im)^www-authenticate:\s*Bearer\s+(.*)$")
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_LOCATION = re.compile(r"(?im)^location:\s*(\S+)")
_REDIRECTS = 3
# NVIDIA's registry redirects logins to another host of NVIDIA.
_NVIDIA = ".nvidia.com"
# A bearer token is written to a curl configuration.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+", re.ASCII)
_fetch = partial(fetch, as_enroot=True)


@dataclass(frozen=True, slots=True)
class RegistryAnswer:
    """Answer of a registry about one image."""

    granted: Granted
    words: str
    """HTTP status, or message of curl; clean."""
    download_bytes: int | None = None
    """Size of all layers, compressed; None unless access is granted."""


def ask_registry(session: Session, image: str, secret: SecretValue | None, registry: str) -> RegistryAnswer:
    """Request the manifest of `image`, such as `nvidia/nemo:25.02.01`, as enroot does: first a token, then with it.

    The login is `secret`, or the API key on the cluster, or none. Raises the errors of `Session.run`.
    """
    name, _, tag = image.partition(":")
    manifests = f"{registry}/v2/{name}/manifests/"
    accept = f"{_LIST}, {_MANIFEST}"
    answer = _fetch(session, f"{manifests}{tag or 'latest'}", accept=accept)
    credentials = NOBODY
    if answer.status == 401:
        granted = _token(session, answer, secret, registry)
        if isinstance(granted, RegistryAnswer):
            return granted
        credentials = Credentials(token=granted)
        answer = _fetch(session, f"{manifests}{tag or 'latest'}", accept=accept, credentials=credentials)
    if answer.status != 200:
        return _refused(answer, {401: "no access", 402: "no access", 403: "no access", 404: "no such image"})
    size = _size(answer.body)
    digest = _digest(answer.body)
    if size is None and digest:
        size = _size(_fetch(session, f"{manifests}{digest}", accept=_MANIFEST, credentials=credentials).body)
    return RegistryAnswer("granted", f"HTTP {answer.status}", size)


def _token(session: Session, challenge: WebAnswer, secret: SecretValue | None, registry: str) -> str | RegistryAnswer:
    """Request a bearer token from the registry, or from the host to which it redirects."""
    match = _CHALLENGE.search(challenge.header)
    parameters = dict(_PARAMETER.findall(match[1])) if match else {}
    url = f"{parameters.pop('realm', '')}?{urlencode(parameters)}"
    stored = Credentials(netrc=ENROOT_CREDENTIALS)
    credentials = Credentials(login=f"$oauthtoken:{secret.value}") if secret else stored
    for _ in range(_REDIRECTS):
        if not _is_trusted(url, registry):
            return RegistryAnswer("unknown", "The registry requests a login in an unknown way.")
        answer = _fetch(session, url, credentials=credentials)
        moved = _LOCATION.search(answer.header)
        if answer.status not in (301, 302, 303, 307, 308) or not moved:
            break
        url = urljoin(url, moved[1])
    if answer.status != 200:
        return _refused(answer, {401: "login refused", 403: "login refused"})
    body = _json(answer.body)
    token = str(body.get("token") or body.get("access_token") or "")
    return token if _TOKEN.fullmatch(token) else RegistryAnswer("unknown", "The registry's token is invalid.")


def _is_trusted(url: str, registry: str) -> bool:
    place, home = urlsplit(url), urlsplit(registry)
    same = (place.scheme, place.netloc) == (home.scheme, home.netloc)
    return same or (place.scheme == "https" and (place.hostname or "").endswith(_NVIDIA))


def _refused(answer: WebAnswer, meanings: dict[int, Granted]) -> RegistryAnswer:
    return RegistryAnswer(meanings.get(answer.status, "unknown"), answer.error or f"HTTP {answer.status}")


def _size(manifest: str) -> int | None:
    layers = _json(manifest).get("layers")
    sizes = [layer.get("size") for layer in layers if isinstance(layer, dict)] if isinstance(layers, list) else []
    numbers = [size for size in sizes if isinstance(size, int)]
    return sum(numbers) if numbers and len(numbers) == len(sizes) else None


def _digest(index: str) -> str:
    """Digest of the first image of a list: images for other processors have about the same size."""
    manifests = _json(index).get("manifests")
    first = manifests[0] if isinstance(manifests, list) and manifests else {}
    digest = str(first.get("digest", "")) if isinstance(first, dict) else ""
    return digest if re.fullmatch(r"sha256:[0-9a-f]{64}", digest) else ""


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
