"""What is promised, tried from outside on whole stacks: HTTP, files, process ids and the provider's own log."""
