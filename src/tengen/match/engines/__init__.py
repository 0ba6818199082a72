"""Foreign engines: processes that speak GTP (Go) or UCI (chess), never trusted and never waited for without limit."""
