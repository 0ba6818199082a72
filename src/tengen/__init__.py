"""Tengen trains game-playing networks by self-play, on one accelerator."""

__version__ = "0.1.0"
