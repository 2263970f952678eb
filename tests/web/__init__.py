"""Pages from hosts that nobody here trusts."""
