"""Comparison of run results: repeats, scaling, slow nodes and changes over time."""
