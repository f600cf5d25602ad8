"""`StepModel`: the physics with a coefficient for each term; `llmb_tui.fit` writes the coefficients."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.hardware import Coefficients
from llmb_tui.plan.physics import IN_STAGES, TIMES, Terms
from llmb_tui.plan.plan import Breakdown

_STAGES = len(IN_STAGES)
_COMPUTE = tuple(TIMES.index(name) for name in "linear_bf16 linear_fp8 attention memory cast moe latency head".split())
_OPTIMIZER = TIMES.index("optimizer")


@dataclass(frozen=True, slots=True)
class StepModel:
    """Step time = (sum of coefficient * term + bubble * the stages' sum) * (1 + stragglers * doublings)."""

    weights: tuple[float, ...]
    """Coefficients of `TIMES`, in their order."""
    stragglers: float
    """Growth of the step time with each doubling of the GPUs, as a fraction."""

    def seconds(self, work: Terms) -> float:
        """The step time, seconds."""
        times = self._times(work)
        return (sum(times) + work.bubble * sum(times[:_STAGES])) * (1 + self.stragglers * work.doublings)

    def breakdown(self, work: Terms, step_time_s: float) -> Breakdown:
        """Parts that add up to a given step time, seconds. Stragglers count as communication."""
        times = self._times(work)
        scale = step_time_s / self.seconds(work)
        compute = scale * sum([times[index] for index in _COMPUTE])
        bubble = scale * work.bubble * sum(times[:_STAGES])
        optimizer = scale * times[_OPTIMIZER]
        return Breakdown(compute, max(0.0, step_time_s - compute - bubble - optimizer), bubble, optimizer)

    def _times(self, work: Terms) -> list[float]:
        return [weight * term for weight, term in zip(self.weights, work, strict=False)]


def step_model(coefficients: Coefficients) -> StepModel:
    """The model with the stored coefficients."""
    return StepModel(tuple(coefficients.terms[name] for name in TIMES), coefficients.stragglers)
