"""The way to a login node over SSH: settings, host keys, logins, and the connection."""
