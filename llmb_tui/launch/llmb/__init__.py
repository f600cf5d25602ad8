"""Runs that NVIDIA's own launcher has submitted."""
