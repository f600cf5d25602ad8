"""Connections to clusters: commands, files, jobs and logs on them, over SSH or HTTPS."""
