"""Stand-in for tests."""


class SlurmTemplate:
    """Imported, but never used."""
