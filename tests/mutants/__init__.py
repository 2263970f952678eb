"""Mutants: one rule taken out of one product file or one database object, and the named test that must turn red."""
