"""The training daemon: waits for data that others make, trains, exports, hands on, and begins again."""
