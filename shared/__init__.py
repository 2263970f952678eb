"""What every room may read: settings, words, the store, the doorbell, the stream, the request."""
