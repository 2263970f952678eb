"""From stored rows to the exact bytes of a request: pure, no I/O, no clock; the same rows give the same bytes on
every machine."""
