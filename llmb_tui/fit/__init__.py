"""How good is the estimate? Published rows in; coefficients and leave-one-out errors out. Only this room knows scipy."""
