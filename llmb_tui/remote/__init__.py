"""What runs over there? Files that are copied to the cluster. They import nothing of `llmb_tui`."""
