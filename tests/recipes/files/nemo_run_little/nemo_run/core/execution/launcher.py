"""Stand-in for tests."""


class SlurmTemplate:
    """Named, and never used."""
