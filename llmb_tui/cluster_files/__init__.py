"""Files that runs and installs have left on a cluster, and removing them, there and here."""
