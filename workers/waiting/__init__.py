"""What a turn waits for without holding a worker: a person's decision, a person's answer, its children."""
