"""Placing one pod: filter, score, select; and saying why not."""
