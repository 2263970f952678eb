"""Owns runs behind the wall: their supervisor in the launcher's child, and the worker's side of it."""
