"""API keys that a request needs: for the container registry and for the model hub. Pure."""

from __future__ import annotations

from llmb_tui.plan.plan import Plan
from llmb_tui.preflight.secret import REGISTRY, TITLES, SecretNeed
from llmb_tui.request import RunRequest


def registry_key(plan: Plan) -> tuple[SecretNeed, ...]:
    """API key of the container registry for the plan's image; empty if the image is unknown."""
    if plan.container is None:
        return ()
    need = SecretNeed(
        id="ngc",
        title=TITLES["ngc"],
        why=f"The image {plan.container} comes from {REGISTRY}. The recipes download it without an API key; "
        "you need one only if the registry refuses or limits anonymous downloads.",
        where="https://org.ngc.nvidia.com/setup/api-keys",
        how_long="The account is free and gives access at once (NVIDIA's page of Llama2-70B-SteerLM-Chat).",
        required=False,
        opens=(plan.container,),
    )
    return (need,)


def hub_token(request: RunRequest, *, required: bool, more: str = "") -> tuple[SecretNeed, ...]:
    """Model hub token, for NVIDIA's scripts (`more` extends its reason) or for an option of the run."""
    recipe, options = request.recipe, request.plan.options
    scripts = (recipe.upstream.setup, recipe.upstream.launch) if recipe.upstream else ()
    if not (options.hub_tokenizer or any(script.needs_hub_token for script in scripts)):
        return ()
    model = recipe.models.get(request.plan.selection.size)
    opens = model.gated_access if model else ()
    why = f"NVIDIA's scripts download the tokenizer from the model hub. {more}".rstrip()
    if options.hub_tokenizer and model and model.hub_tokenizer:
        opens = (model.hub_tokenizer,)
        why = f"The run downloads the tokenizer of {model.hub_tokenizer} from the model hub."
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
