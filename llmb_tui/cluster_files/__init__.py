"""Files of runs and installs on a cluster: fetch them, list their size, remove them."""
