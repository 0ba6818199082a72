"""The training daemon: waits for data from others, trains, exports, uploads, and begins again."""
