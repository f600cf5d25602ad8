"""Checks of a cluster before an install or a submission."""
