"""TOML files that users write: reading, validation, and errors by file, line and field."""
