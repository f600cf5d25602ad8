"""The forms of the cluster editor: one for each kind of cluster."""
