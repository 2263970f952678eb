"""Tests of the wall around what a model chose to run."""
