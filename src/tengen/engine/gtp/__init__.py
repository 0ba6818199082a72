"""GTP: how Go programs are told what to play. See docs/gtp.md."""
