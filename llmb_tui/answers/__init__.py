"""How is it said? Values of all rooms above in; an `Answer` out, which the writers make text of."""
