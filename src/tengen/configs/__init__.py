"""The configurations that ship with Tengen."""
