"""Tests on real servers: unit, integration, acceptance, chaos, architecture, benchmarks."""
