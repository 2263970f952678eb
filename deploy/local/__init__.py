"""Owns the stack on one machine: embedded servers, the supervisor that keeps them, and the commands behind `./dev`."""
