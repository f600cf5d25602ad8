"""Our script: `remote/pretrain.py` in the recipe's container image, with nothing else installed."""
