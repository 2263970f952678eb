"""What a shell would make of a command line: which programs, with which words. Nothing is run."""
