"""Tests of the tools and of the walls around them."""
