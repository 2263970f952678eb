"""The request from rows to bytes: canonical text, projection, cache plan, digest, estimate."""
