"""What runs are handed over as: `Reports` collects it, `document` says it, `html` and `markdown` write it."""
