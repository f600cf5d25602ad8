"""The recipes' own procedure: their scripts install, their launch script submits."""
