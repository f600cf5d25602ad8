"""A scheduler whose queue is a directory, with all parts that docs/architecture.md lists for a new kind of cluster."""
