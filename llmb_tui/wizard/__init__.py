"""What is asked next? Answers in; a `Selection`, choices and the problems of each step out. Pure."""
