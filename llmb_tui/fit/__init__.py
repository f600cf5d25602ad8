"""Fit of the estimate's coefficients to published rows, and its errors. Only this room imports numpy."""
