"""Owns the command line: a client of the HTTP surface that imports nothing of the rest of `api`."""
