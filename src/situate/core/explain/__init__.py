"""Explains where a pod is or why it is pending, and suggests changes that would place it.

It runs the engine's own filters and scorers and decides nothing itself. Every suggestion was tried on the given
cluster, which is restored afterwards.
"""
