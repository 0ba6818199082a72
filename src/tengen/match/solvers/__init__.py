"""Perfect play for games that are small enough to be solved on the host."""
