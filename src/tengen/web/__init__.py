"""Runs in the browser: a report in one file, and the same page live."""
