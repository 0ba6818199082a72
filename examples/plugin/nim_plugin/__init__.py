"""Nim for Tengen."""
