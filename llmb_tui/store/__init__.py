"""Storage on this machine: paths, file modes, atomic writes, settings, the journal and documents."""
