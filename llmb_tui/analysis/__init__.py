"""How does it compare? Run results in; comparisons, scaling, slow nodes and changes over time out."""
