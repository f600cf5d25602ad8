"""The direct procedure: our entry script in the recipe's container image, with nothing else installed."""
