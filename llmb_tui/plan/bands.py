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
"""Log-log between two published scales: 0.3 %, 2 % at most, except one point that looks misprinted."""
BEYOND = 4.0
"""First doubling beyond the published scales: 1 %; 8 % at the point that looks misprinted."""
BEYOND_AT_LEAST = 2.0
FARTHER = 2.0
"""Each further doubling: the error of the model is 5 % after six doublings."""
BATCH = 10.0
"""Another batch per GPU, same layout: 3 %, 8 % at most, for one model."""
LAYOUT = 15.0
"""Another layout: 3 % between layouts of one release, 12 % between releases, all of them tuned."""
PRECISION = 12.0
"""The other precision, of a dense model: 4 %, 8 % at the 90th percentile."""
PRECISION_OF_EXPERTS = 20.0
"""The other precision with experts: only one model was measured."""
VARIANT = 12.0
"""Another scaling of the same precision. Current scaling and MXFP8 with the same layout, GPUs and container differ by
6 % on average, 12 % at most, in the eight pairs of Megatron-Bridge's docs/performance-summary-archive.md (067f987d,
containers 25.11 to 26.06). Delayed and current scaling were published only in different releases: 3 to 13 % apart, with
that (Llama 3.1 70b and 405b on H100, dgxc-benchmarking 25.04 and Megatron-Bridge 25.09 and 25.11)."""
DEPTH = 8.0
"""Another number of layers of the same model."""
SEQUENCE = 8.0
"""For each doubling or halving of the sequence."""
SIZE = 12.0
"""Another dense model on the same GPU type: 4 %, 8 % at the 90th percentile, 11 % at most."""
SIZE_ELSEWHERE = 20.0
"""Another dense model on a GPU type outside the fit, whose factor rests on few models."""
SIBLING = 20.0
"""A GPU type in place of another of its generation."""
UNSEEN_GPU = 35.0
"""A GPU type of an unmeasured generation: the error was -21 % on one generation, +19 % on the next."""


def quadrature(*steps: float) -> float:
    """Combined half-width of independent steps."""
    return math.hypot(*steps)


def beyond(doublings: float) -> float:
    """Half-width at a distance of so many doublings from the nearest published scale."""
    if not doublings:
        return 0.0
    return max(BEYOND_AT_LEAST, BEYOND * min(doublings, 1.0)) + FARTHER * max(doublings - 1.0, 0.0)
