"""What operators are told of the fleet."""
