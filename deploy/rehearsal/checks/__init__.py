"""Owns what the service refuses, in its order and its words."""
