"""Trainers in which each side of a game has its own network, replay buffer and schedules (docs/trainers.md)."""
