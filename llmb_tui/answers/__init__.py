"""Answers for people and for programs: a value of another room in, an `Answer` out."""
