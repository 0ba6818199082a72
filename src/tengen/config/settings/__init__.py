"""All settings of a run, declared once: one module for each section of a configuration. None of them needs JAX."""
