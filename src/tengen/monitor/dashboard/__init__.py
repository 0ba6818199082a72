"""The dashboard: what a daemon or a run says, on one screen. Needs Textual, and no JAX."""
