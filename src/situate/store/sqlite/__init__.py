"""The store in one SQLite file, for one server: durable, and as fast as the disk can promise.

One thread writes and checkpoints; others read from snapshots; the event loop waits for neither.
"""
