"""Evidence: one file with finished runs that another person can check; export and verification of such a file."""
