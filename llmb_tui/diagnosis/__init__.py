"""What do these words mean? Words of programs that failed in, reason and fix out, by rules that stand in files."""
