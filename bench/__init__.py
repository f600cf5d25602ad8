"""Benchmarks. Each compares programs or versions in the same run. No test asserts a time."""
