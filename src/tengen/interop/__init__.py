"""Networks and data in the formats of other programs."""
