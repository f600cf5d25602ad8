"""Formats in which training programs log their steps, one module each."""
