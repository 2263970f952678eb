"""Faults from outside: processes killed, frozen and cut off while turns run."""
