"""Owns `./dev demo`: one overnight brief on real input, from a job that comes due to the file that is delivered."""

from deploy.demo.run import main

__all__ = ["main"]
