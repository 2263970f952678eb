"""Manners towards providers: tests."""
