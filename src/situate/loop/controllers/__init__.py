"""Runs the controllers of core/reconcile: caches what they read, calls those that a change concerns, and performs their
effects through a port, over HTTP or in the same process."""
