"""What will run, and how fast? `Selection` in, `Plan` out."""
