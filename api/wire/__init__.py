"""What crosses the wire: bodies of requests and answers. Dollars are numbers; null is an unknown cost, never zero."""
