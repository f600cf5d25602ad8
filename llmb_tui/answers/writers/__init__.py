"""Writers of an `Answer`: rows for a terminal, JSON, CSV, Markdown, HTML and SVG."""
