"""Stand-in for tests: what NeMo's performance scripts import of NeMo-Run. Nothing in it submits."""


class Plugin:
    """Base of NeMo's plugins."""
