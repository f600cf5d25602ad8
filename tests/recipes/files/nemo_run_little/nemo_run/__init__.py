"""Stand-in for tests: the names that NeMo's performance scripts import from NeMo-Run. It submits nothing."""


class Plugin:
    """Base of NeMo's plugins."""
