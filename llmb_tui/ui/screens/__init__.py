"""Screens: the wizard, a run, the list of runs."""
