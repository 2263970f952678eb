"""Plain reads, as static text. Each asks for what the caller may see in the same statement that reads it."""
