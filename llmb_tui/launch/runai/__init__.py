"""The Run:ai procedure: our own entry script in the recipe's container, as one workload."""
