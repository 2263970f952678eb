"""Proves the rehearsal provider: its wire, its refusals, its bill, its faults and its honest policies."""
