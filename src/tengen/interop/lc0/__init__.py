"""Lc0's networks."""
