"""Evidence: finished runs in → one file that a second person can check; and checking such a file."""
