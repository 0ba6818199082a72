"""One game thinking: an engine around a search, and the ways to talk to it (GTP, UCI, a console)."""
