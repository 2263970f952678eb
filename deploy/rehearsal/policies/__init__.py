"""Owns how the stand-in behaves when no script speaks: it acts only on what the request shows."""
