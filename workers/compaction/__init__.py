"""Compaction: a summary stands for the middle of a conversation, decided elsewhere, carried out and judged here."""
