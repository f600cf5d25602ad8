"""Installations of NVIDIA's own tools on a cluster."""
