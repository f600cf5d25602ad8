"""A procedure of tests: one batch script that prints the log of a training."""
