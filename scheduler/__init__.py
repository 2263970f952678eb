"""The scheduler's room: what is due, left behind, or to be delivered. It admits work and never does it."""
