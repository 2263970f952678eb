"""The day as a benchmark: one conversation through a simulated day, its bill, and what was lost."""
