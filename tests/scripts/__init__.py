"""Tests of scripts in `benchmarks` that are more than a measurement."""
