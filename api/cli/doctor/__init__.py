"""Owns `doctor`: every part checked by doing what the parts themselves do, each failure with its mend."""
