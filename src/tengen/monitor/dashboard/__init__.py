"""The dashboard: a daemon or a run on one screen. Needs Textual, but no JAX."""
