"""Decisions on tool calls: what a command would do as far as can be known, and who must allow it. Pure."""
