"""What can be run? Preset files in, `Recipe` out. Pure but for reading the files."""
