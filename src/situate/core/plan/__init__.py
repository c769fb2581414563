"""Capacity plans: how much more fits, how many nodes it takes, what a loss or a drain does, the fewest moves for room.

Each plan is tried in a `sandbox` with the engine's own filters and scorers, and undone. Nothing here changes a real
cluster; the command line applies a plan step by step and checks each step.
"""
