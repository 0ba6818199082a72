"""Searching for good settings: many runs of one configuration, packed on this machine, kept in one folder.

    space.py       what is varied          strategies.py  which trials come next, from what the last ones scored
    trial.py       one trial, JSON in and out             executor.py    where trials run
    driver.py      all of it, resumable                   report.py, plot.py    what a person sees

Nothing here imports JAX: trials are processes of their own (docs/sweep.md).
"""
