"""When the past of a conversation is rewritten, and how: decided by arithmetic, carried out as edits."""
