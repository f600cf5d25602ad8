"""How is it written? Runs and suites in; a report's blocks and their HTML, Markdown and SVG out."""
