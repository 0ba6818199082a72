"""Slow, obvious rules of each game, written without a look at `tengen.games`, for tests to compare with."""
