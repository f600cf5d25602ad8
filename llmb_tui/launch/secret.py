"""`SecretNeed`: the keys that a run may need, where to get them and how long that takes. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan
from llmb_tui.request import RunRequest

SecretId = Literal["ngc", "hugging-face"]
SECRETS: tuple[SecretId, ...] = ("ngc", "hugging-face")
TITLES: dict[SecretId, str] = {"ngc": "NGC API key", "hugging-face": "Hugging Face token"}

REGISTRY = "nvcr.io"
"""Where the images of the recipes are published."""
SECRETS_FOLDER = ".llmb-tui"
"""Below the operator's home directory on a cluster: mode 0700, with the files of the secrets in it."""
ENROOT_CREDENTIALS = f"{SECRETS_FOLDER}/enroot/.credentials"
"""Below the home directory. Enroot reads it where ENROOT_CONFIG_PATH names its directory; the operator's own file
of that name, in enroot's own directory, is never touched."""
HUB_TOKEN = f"{SECRETS_FOLDER}/hugging-face-token"
"""Below the home directory; HF_TOKEN_PATH may name it."""

# What goes into a netrc file and a curl configuration: nothing that either takes apart.
_VALUE = re.compile(r"[A-Za-z0-9._~+/=-]{8,512}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A key itself. Its value is in no repr, and goes nowhere but over stdin and into the system's keyring."""

    id: SecretId
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SecretNeed:
    """A key that a plan needs, or can do without."""

    id: SecretId
    title: str
    why: str
    where: str
    """Address of the page that makes one."""
    how_long: str
    """How long it takes to get one that opens what is needed, and who says so; empty where nobody says."""
    required: bool
    """False: install and run work without it, unless something refuses."""
    opens: tuple[str, ...]
    """The image reference, or the model hub's gated repositories, that it has to open."""


def secret_of(secret_id: str, typed: str) -> SecretValue:
    """The secret that somebody typed or pasted. Raises Trouble (exit code 1), without quoting it, for what is none."""
    value = typed.strip()
    for name in SECRETS:
        if name == secret_id and _VALUE.fullmatch(value):
            return SecretValue(name, value)
    if secret_id not in SECRETS:
        raise Trouble(f"No secret is called {secret_id!r}.", "", f"There are {' and '.join(SECRETS)}.", exit_code=1)
    raise Trouble(
        "This cannot be a key.",
        f"It has {len(value)} characters, or some that no key has: only letters, digits and . _ ~ + / = - are in one.",
        "Copy it again, as a whole and without quotes.",
        exit_code=1,
    )


def registry_key(plan: Plan) -> tuple[SecretNeed, ...]:
    """The key of the container registry, for the plan's image; none where no image is known."""
    if plan.container is None:
        return ()
    need = SecretNeed(
        id="ngc",
        title=TITLES["ngc"],
        why=f"The image {plan.container} comes from {REGISTRY}. The recipes fetch it without a key; "
        "one is needed only where the registry refuses or limits that.",
        where="https://org.ngc.nvidia.com/setup/api-keys",
        how_long="The account is free and gives access at once (NVIDIA's page of Llama2-70B-SteerLM-Chat).",
        required=False,
        opens=(plan.container,),
    )
    return (need,)


def hub_token(request: RunRequest, *, required: bool, more: str = "") -> tuple[SecretNeed, ...]:
    """The model hub's token, for NVIDIA's own scripts, of which `more` is said, or for an option of the run."""
    recipe, options = request.recipe, request.plan.options
    scripts = (recipe.upstream.setup, recipe.upstream.launch) if recipe.upstream else ()
    if not (options.hub_tokenizer or any(script.needs_hub_token for script in scripts)):
        return ()
    model = recipe.models.get(request.plan.selection.size)
    opens = model.gated_access if model else ()
    why = f"NVIDIA's own scripts fetch the tokenizer from the model hub. {more}".rstrip()
    if options.hub_tokenizer and model and model.hub_tokenizer:
        opens = (model.hub_tokenizer,)
        why = f"The run takes the tokenizer of {model.hub_tokenizer} from the model hub."
    access = recipe.access
    need = SecretNeed(
        id="hugging-face",
        title=TITLES["hugging-face"],
        why=why,
        where="https://huggingface.co/settings/tokens",
        how_long=f"{access.note} ({access.source})" if access.hub_token and access.note else "",
        required=required or options.hub_tokenizer,
        opens=opens,
    )
    return (need,)
