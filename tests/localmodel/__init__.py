"""`./dev test-local-model`: turns driven by a real, small, weak model. No part of `./dev test`."""
