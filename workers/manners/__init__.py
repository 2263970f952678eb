"""How a fleet behaves towards providers: what a key may be asked, and when it is left alone."""
