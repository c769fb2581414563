"""Plans: how much more fits, how many nodes it takes, what a loss or a drain would do, the fewest moves that make room.

Each plan is tried on a cluster of one's own (`sandbox`), by asking what the engine asks, and undone. Nothing here does
anything to a cluster; whoever wants a plan carried out does that step by step, and looks after each.
"""
