"""The handlers, thin: ask who is calling, read or write rows, commit, ring."""
