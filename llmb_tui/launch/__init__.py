"""Launch runs: `Plan` and `ClusterProfile` in; install steps, the script, one submission and a `Run` out."""
