"""And without a screen? The same functions as verbs."""


def main() -> int:
    """Entry point of `llmb-tui`."""
    return 0
