"""Owns how Nightshift is started; nothing imports this package but tests."""
