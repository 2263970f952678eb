"""The system prompt, warnings, the last instruction."""
