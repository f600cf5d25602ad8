"""A scheduler whose queue is a directory: what docs/architecture.md says that another kind of cluster takes."""
