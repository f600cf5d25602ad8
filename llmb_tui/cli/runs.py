"""`jobs`, `watch`, `logs`, `cancel`, `results`: runs that were submitted."""

from __future__ import annotations

import argparse
