from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.cluster import Rig
from tests.rig.jobs.watched import Site


@pytest.fixture
def site(rig: Rig, tmp_path: Path) -> Iterator[Site]:
    """A site on the rig with accounting."""
    new_site = Site(rig, tmp_path)
    yield new_site
    new_site.close()


@pytest.fixture
def site_without_accounting(rig_without_accounting: Rig, tmp_path: Path) -> Iterator[Site]:
    """A site on the rig without slurmdbd."""
    new_site = Site(rig_without_accounting, tmp_path)
    yield new_site
    new_site.close()
