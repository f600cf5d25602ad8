"""The direct procedure: nothing but the container image on the cluster, and our own entry script in it."""
