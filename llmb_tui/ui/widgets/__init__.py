"""Widgets: each is given one value and renders it."""
