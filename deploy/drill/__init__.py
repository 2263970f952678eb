"""Owns `nightshift drill`: a stack of its own, a load whose effects are logged, and what can be done to it."""

from deploy.drill.run import main

__all__ = ["main"]
