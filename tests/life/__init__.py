"""A process's life: lease, lock, and how both outlive what happens to their connections."""
