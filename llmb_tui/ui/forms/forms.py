"""`FORMS`: the form of each kind of cluster. A new kind needs a form and an entry here."""

from __future__ import annotations

from typing import Any, Protocol

from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.ui.forms.form import ProfileForm
from llmb_tui.ui.forms.runai import RunaiForm
from llmb_tui.ui.forms.slurm import SlurmForm


class FormClass(Protocol):
    """A subclass of `ProfileForm`."""

    ROUTES: dict[str, str]

    def __call__(self, base: Any, /) -> ProfileForm[Any, Any]:
        """Make a form that starts from a profile; None for a new cluster."""


FORMS: dict[str, FormClass] = {SlurmProfile.kind: SlurmForm, RunaiProfile.kind: RunaiForm}
"""Forms by the `kind` of a profile; the first is the default."""
