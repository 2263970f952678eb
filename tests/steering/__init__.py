"""What a person says to a turn that is under way: read at once, kept in order, never lost."""
