"""Run:ai over HTTPS."""
