"""Owns the commands behind `./dev` and the processes' own entry in the console script, one module a command."""
