"""What the fleet tells its operators: ids, counts, durations and classes. No type here has a place for a message."""
