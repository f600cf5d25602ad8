"""TOML files that people write: read, checked, and what is wrong with them named by file, line and field."""
