"""A bandwidth limit in bytes a second, with a clock that the test sets."""

from __future__ import annotations

import random

import pytest

from llmb_tui.cluster.bandwidth import Limit, LimitedStream, bytes_per_s
from llmb_tui.cluster.link import Stream
from llmb_tui.errors import LlmbError


class Pouring(Stream):
    """As many bytes as requested, at once."""

    def __init__(self) -> None:
        super().__init__()
        self.chance = random.Random(3)

    def read(self, timeout_s: float) -> bytes | None:  # noqa: ARG002 - a `Stream`'s
        return bytes(self.chance.randrange(1, 1 << 20))

    def send_keepalive(self) -> None:
        pass

    def _end(self) -> None:
        pass


def test_a_limited_stream_exceeds_the_limit_by_at_most_one_chunk() -> None:
    now = [1000.0]
    stream = LimitedStream(
        Pouring(), Limit(2_000_000, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))
    )
    came, nothing = 0, 0
    while now[0] < 1060:
        data = stream.read(0.2)
        nothing += data is None
        came += len(data or b"")
    assert nothing, "a read returns in time, with nothing"
    assert 60 * 2_000_000 - (1 << 20) < came < 60 * 2_000_000 + 2 * (1 << 20)


@pytest.mark.parametrize(
    ("text", "rate"), [("500k", 5e5), ("20M", 2e7), ("2.5 MB/s", 2.5e6), ("1G", 1e9), ("100000", 1e5), ("1MB", 1e6)]
)
def test_rates(text: str, rate: float) -> None:
    assert bytes_per_s(text) == rate


@pytest.mark.parametrize("text", ["", "0", "99k", "-1M", "1T", "fast", "1e9", "inf", "\x1b[2J", "1" * 40])
def test_an_invalid_rate_is_refused(text: str) -> None:
    with pytest.raises(LlmbError) as refused:
        bytes_per_s(text)
    assert refused.value.exit_code == 1
