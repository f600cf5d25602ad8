"""How is it written? Text, numbers and names in; what people read out. Imports nothing."""
