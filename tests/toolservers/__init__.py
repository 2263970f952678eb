"""Tool servers: one that nobody here wrote, and one that does its worst."""
