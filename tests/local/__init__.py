"""The embedded servers and their supervisor, on real processes."""
