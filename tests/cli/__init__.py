"""The command line against a small HTTP server that follows contract.md."""
