"""`python -m llmb_tui`."""

import sys

from llmb_tui.cli import main

sys.exit(main())
