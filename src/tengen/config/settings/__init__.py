"""The settings of a run: one module for each section of a configuration file. None of them needs JAX."""
