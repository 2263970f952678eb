"""The cached prefix and the honest shrink."""
