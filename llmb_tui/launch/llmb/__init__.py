"""Runs that NVIDIA's own launcher has started."""
