"""UCI: a network for chess programs (docs/uci.md)."""
