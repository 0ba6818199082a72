"""Whole runs: self-play and learning in one process, as a pipeline in one process, or as many processes."""
