"""NVIDIA's scripts install the recipe and submit the run."""
