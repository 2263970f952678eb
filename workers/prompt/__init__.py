"""What the model is told about itself: the system prompt's tiers, warnings, and the instruction of a last call."""
