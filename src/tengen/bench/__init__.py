"""Measurements that a user can repeat: `tengen bench`."""
