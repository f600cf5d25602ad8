"""How does a training write its steps? Bytes of a log in, the steps in them out; a format is a module."""
