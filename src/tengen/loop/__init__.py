"""The ring of self-play and learning, driven."""
