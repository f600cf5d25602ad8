"""Stand-in for tests: Megatron Core is imported by nothing here."""
