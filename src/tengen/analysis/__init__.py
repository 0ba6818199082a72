"""Looking at positions and games: what a network thinks, as text, JSON and pictures."""
