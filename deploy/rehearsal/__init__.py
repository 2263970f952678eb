"""Owns the rehearsal provider: a real HTTP server that speaks and bills as the model provider does."""
