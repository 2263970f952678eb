"""The scheduler, on real servers and against real processes that are killed and frozen from outside."""
