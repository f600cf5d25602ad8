"""Why did it fail? Output of a failed program in, reason and remedy out, by rules from files."""
