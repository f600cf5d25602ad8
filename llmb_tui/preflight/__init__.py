"""What a cluster must have before anything is installed or queued, checked from its login node."""
