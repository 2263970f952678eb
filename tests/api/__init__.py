"""The HTTP surface over real HTTP, on real servers; what a worker writes is written here by hand."""
