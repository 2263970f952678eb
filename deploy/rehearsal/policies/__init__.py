"""Owns how the stand-in model behaves when no script speaks: it acts only on what the request shows, and says what it is."""
