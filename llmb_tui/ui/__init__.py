"""What does a person see? Screens, widgets, styles. No SSH, no arithmetic."""
