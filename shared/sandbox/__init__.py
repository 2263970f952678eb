"""Owns the wall around commands and code that a model chose: what they see, what they may use, how they are begun."""
