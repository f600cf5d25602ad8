"""Where? A host in, one authenticated connection and facts about the cluster out."""
