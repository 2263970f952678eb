"""The house's own rules, as tests over the source: no service, no import of the product."""
