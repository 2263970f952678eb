"""Tool servers that others wrote, by the Model Context Protocol: each behind a process of its own."""
