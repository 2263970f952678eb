"""The proved rules of the store, raced by real connections."""
