"""An `Answer` as rows for a terminal, JSON, CSV, Markdown, HTML and SVG: each module is one way to write it."""
