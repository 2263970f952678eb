"""The HTTP surface: thin. It asks who is calling, writes a row, commits, and rings."""
