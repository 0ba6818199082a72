"""Engines of others: processes that speak GTP (Go) or UCI (chess), never trusted and never waited for without end."""
