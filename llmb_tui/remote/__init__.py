"""Programs that run on the cluster, where their files are copied to. They import nothing of `llmb_tui`."""
