"""The upstream procedure: NVIDIA's own scripts install the recipe and submit the run."""
