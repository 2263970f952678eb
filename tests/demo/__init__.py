"""The demo on the whole stack, on this repository's kind of input and on a folder as a person has it."""
