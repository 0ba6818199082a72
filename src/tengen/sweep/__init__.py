"""Searching for good settings: many runs of one configuration, packed on this machine, kept in one folder.

Nothing here imports JAX: trials are separate processes (docs/sweep.md).
"""
