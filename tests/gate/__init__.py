"""The gate: what is decided of a command, by the table, by the corpus and against a real shell."""
