"""Panes: one for each step of the wizard."""
