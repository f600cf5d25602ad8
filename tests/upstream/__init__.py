"""NVIDIA's real scripts and packages."""
