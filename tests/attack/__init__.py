"""Hostile models, providers, folders and people: each test is an attack that once succeeded, or would cost most."""
