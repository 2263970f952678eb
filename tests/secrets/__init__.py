"""Keys: where they come from, who gets which, and that no text holds one."""
