"""`python -m llmb_tui.fit` fits the step model to the published rows and stores the coefficients in the presets."""

from __future__ import annotations

import sys
from datetime import date

from llmb_tui.catalog.load import load_presets, model_dir
from llmb_tui.fit.solve import FITTED_ON, fit_model, fitted_rows
from llmb_tui.fit.store import document, write
from llmb_tui.language.quantities import plain_number


def main() -> None:
    """Fit the model, write its coefficients and print a summary."""
    catalog = load_presets()
    rows, chip = fitted_rows(catalog), catalog.chips[FITTED_ON]
    file = model_dir() / "coefficients.toml"
    stored = document(rows, chip, fit_model(rows, chip), date.today().isoformat())
    write(file, stored)
    for part in ("rows", "terms", "errors"):
        sys.stdout.write(
            f"{part}: {', '.join(f'{name} {plain_number(value)}' for name, value in stored[part].items())}\n"
        )
    sys.stdout.write(f"written: {file}\n")


if __name__ == "__main__":
    main()
