"""Screens, widgets and styles. No SSH, no arithmetic."""
