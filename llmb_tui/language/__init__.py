"""Text of quantities, times, names and states, as people read it. Imports no other room."""
