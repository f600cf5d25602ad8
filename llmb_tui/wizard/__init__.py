"""The wizard as a pure state machine: answers in; a `Selection`, choices and the problems of each step out."""
