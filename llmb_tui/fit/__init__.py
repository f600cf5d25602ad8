"""How good is the estimate? Published rows in; coefficients and errors out. Only this room knows numpy."""
