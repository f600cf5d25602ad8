"""What is remembered? Paths, modes, atomic writes, the journal, documents."""
