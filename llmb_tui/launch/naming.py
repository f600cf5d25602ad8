"""Names of runs, images and jobs: the recipes' own, so that their tools find what this program made. Pure."""

from __future__ import annotations

import re
import secrets
import time

from llmb_tui.catalog.catalog import release_order
from llmb_tui.cluster.validation import matches
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.plan.plan import Plan
from llmb_tui.request import RunRequest

# Without letters and digits that are easily confused: people type run ids.
_SUFFIX_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_LONG_NAMES_SINCE = (25, 8)


def new_run_id(now: float) -> str:
    """A new id: the UTC time of `now` (Unix seconds) to the second, and four random letters or digits."""
    return time.strftime("%y%m%d%H%M%S", time.gmtime(now)) + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(4))


def experiment_name(request: RunRequest) -> str:
    """The recipe's own experiment name: short up to 25.04, with the whole layout from 25.08 on."""
    selection, p = request.plan.selection, request.plan.parallelism
    family = request.recipe.workload.removesuffix(f"-{selection.size}")
    base = f"pretrain_{family}_{selection.size}_{selection.dtype}"
    if release_order(request.recipe.release) < _LONG_NAMES_SINCE:
        return f"{base}_{selection.scale}"
    vp = "" if p.vp is None else f"_vp{p.vp}"
    return f"{base}_gpus{selection.scale}_tp{p.tp}_pp{p.pp}_cp{p.cp}{vp}_mbs{p.mbs}_gbs{p.gbs}"


def nemo_run_name(account: str, task: str) -> str:
    """Slurm job name that NeMo-Run gives to a task."""
    return f"{account}-{account.rsplit('_', maxsplit=1)[-1]}.{task}"


def container(plan: Plan) -> str:
    """Image reference of the plan, such as `nvidia/nemo:25.02.01`. Raises LlmbError if the plan has none."""
    if plan.container is None:
        raise LlmbError("The plan has no container image.", fix="Choose a GPU type of the recipe.", exit_code=1)
    return plan.container


def image_path(install_dir: str, reference: str) -> str:
    """Path of an imported image, with the recipes' file name: `images/nvidia+nemo+25.02.01.sqsh`."""
    return f"{install_dir.rstrip('/')}/images/{reference.replace('/', '+').replace(':', '+')}.sqsh"


def check_pattern(pattern: re.Pattern[str], value: str, what: str) -> None:
    """Raise LlmbError (exit code 1), naming `what` it is, for a name or path that does not match the pattern."""
    if not matches(pattern, value):
        raise LlmbError(
            f"{clean_line(value)!r} cannot be used as {what.replace('_', ' ')}.",
            "It may contain only letters, digits and . _ + @ = - (in paths also /).",
            "Change it in the cluster's profile or in the selection.",
            exit_code=1,
        )
