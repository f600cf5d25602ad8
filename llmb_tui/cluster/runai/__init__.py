"""Clusters with Run:ai, which are reached over HTTPS."""
