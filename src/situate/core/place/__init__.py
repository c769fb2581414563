"""Placing one pod: filter, score and select a node, or explain why none fits."""
