"""Benchmarks: each compares its figures with one another in the same run, and no test asserts a time."""
