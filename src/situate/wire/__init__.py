"""Converts bytes to objects and back. Opens no files or connections: callers pass bytes."""
