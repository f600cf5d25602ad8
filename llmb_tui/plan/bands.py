"""Half-widths of the band, in per cent: one for each step from what was measured to what is asked.

Steps are taken to be independent, so they add up in quadrature.

Where they come from: what `llmb-tui accuracy` finds on the published rows with those left out that are predicted
(mean, 90th percentile), and how far releases of NVIDIA's recipes lie apart; then a margin, because published layouts
are tuned ones, and because few models were measured. A band that is too wide costs a sharper verdict; one that is
too narrow says something untrue.

`verify` expects of a printed step time this very band: where CLUSTER, RELEASE or VARIANT change, older archives differ.
"""

from __future__ import annotations

import math

CLUSTER = 4.0
"""The same release on another cluster."""
RELEASE = 10.0
"""Another release: 4 % as a rule, 10 % at the 90th percentile of dense models."""
BETWEEN = 2.0
"""Log-log between two published scales: 0.3 %, 2 % at most but for one point that looks misprinted."""
BEYOND = 4.0
"""For the first doubling beyond the published scales: 1 %, and 8 % at the point that looks misprinted."""
BEYOND_AT_LEAST = 2.0
FARTHER = 2.0
"""For each doubling after that: six doublings away the model errs by 5 %."""
BATCH = 10.0
"""Another batch for each GPU, same layout: 3 %, 8 % at most, on one model."""
LAYOUT = 15.0
"""Another layout: 3 % between layouts of one release, 12 % between releases, and those are all tuned."""
PRECISION = 12.0
"""The other precision, of a dense model: 4 %, 8 % at the 90th percentile."""
PRECISION_OF_EXPERTS = 20.0
"""The same with experts: one such model was measured."""
VARIANT = 12.0
"""The same precision scaled otherwise. Current scaling and MXFP8 with the same layout, GPUs and container lie 6 % apart
on average, 12 % at most, in the eight pairs of Megatron-Bridge's docs/performance-summary-archive.md (commit 067f987d,
containers 25.11 to 26.06). Delayed and current scaling were published in different releases only: 3 to 13 % apart, with
that (Llama 3.1 70b and 405b on H100, dgxc-benchmarking 25.04 and Megatron-Bridge 25.09 and 25.11)."""
DEPTH = 8.0
"""Another number of layers of the same model."""
SEQUENCE = 8.0
"""For each doubling or halving of the sequence."""
SIZE = 12.0
"""Another dense model on the same GPU type: 4 %, 8 % at the 90th percentile, 11 % at most."""
SIZE_ELSEWHERE = 20.0
"""The same on a GPU type that the model is not fitted on: its factor comes from the few models measured there."""
SIBLING = 20.0
"""A GPU type that stands in for another of its generation."""
UNSEEN_GPU = 35.0
"""A GPU type of which no generation was measured: the model erred by -21 % on one generation, by +19 % on the next."""


def quadrature(*steps: float) -> float:
    """Half-width of independent steps together."""
    return math.hypot(*steps)


def beyond(doublings: float) -> float:
    """Half-width for scales that are so many doublings away from the nearest published one."""
    if not doublings:
        return 0.0
    return max(BEYOND_AT_LEAST, BEYOND * min(doublings, 1.0)) + FARTHER * max(doublings - 1.0, 0.0)
