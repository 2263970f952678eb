"""Turns that wait, through the loop, on real servers."""
