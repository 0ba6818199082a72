"""Searching for good settings: many runs of one configuration, packed on this machine, kept in one folder.

    space.py       what is varied          strategies.py  which trials come next
    trial.py       one trial, JSON in and out, and where trials run
    driver.py      the whole sweep, resumable             report.py      its results

Nothing here imports JAX: trials are separate processes (docs/sweep.md).
"""
