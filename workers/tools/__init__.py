"""The tools of a session: what the model may ask for, and the walls around it."""
